package attempt

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/notices"
	"github.com/errand-fleet/errand/tasks/worker/outbox"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/tasks/worker/sources"
	"github.com/errand-fleet/errand/workspace"
)

// Runner runs the agent. *agent.Runner implements it.
type Runner interface {
	Run(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error)
	Script(ctx context.Context, s agent.Script) (agent.Scripted, error)
	Separated() bool
}

// Config configures a [Processor]. All fields are required except those that say otherwise.
type Config struct {
	Worker    string // ID of the worker
	Store     *store.Store
	Queue     *queue.Queue
	Runner    Runner
	Workspace *workspace.Workspace
	Sources   *sources.Set
	Policy    rights.Policy
	Pool      string // whose tasks the worker takes; the default one if ""

	Slots        *machine.Slots
	Health       *machine.Health
	Credentials  *Credentials
	Declarations *place.Declarations
	Publisher    *publish.Publisher
	Notices      *notices.Notifier
	Outbox       *outbox.Poster

	// Secrets returns more variables for the set-up of a repository, and Exposed those of them that runs and checks get
	// too; nil for none.
	Secrets, Exposed func(repo string) map[string]string

	Claimed    func()          // is called when a task is claimed and its run begins; nil: nothing
	Caps       []store.Cap     // of claims
	Credential string          // identifies the model credential of the runs without revealing it; "" if unknown
	IdleLimit  time.Duration   // stops a run that shows no sign of work for this long; 0 for no limit
	LogDir     string          // directory where Runner writes the logs; if "", logs are not stored
	Drained    context.Context // ends when the worker interrupts its runs
	Meter      Meter
	Log        *slog.Logger
	Timing     Timing
}

// Timing holds the intervals and time limits of attempts.
type Timing struct {
	Answer     time.Duration // how long an agent waits for a person's answer; 15 min
	Checkpoint time.Duration // between two checkpoints of a run; 5 min
	Pack       time.Duration // at most, to pack an interrupted run's clone at a shutdown; 10 s
	Again      time.Duration // before a failed run is retried, ± 50 %; doubles each time; 30 s
	Reset      time.Duration // after a usage limit is lifted, before its task resumes; up to three times as long; 1 min
	Release    time.Duration // between two starts after a usage limit, until a run succeeds; 10 s
	Budget     time.Duration // how long a task waits for budget that others have reserved and may release; 15 s
	// how long a task whose worker died waits for the other runs on its worker to end, before it runs there without
	// them; 2 min
	Alone time.Duration
}

// WithDefaults returns t with the defaults for what is zero.
func (t Timing) WithDefaults() Timing {
	t.Answer = cmp.Or(t.Answer, 15*time.Minute)
	t.Checkpoint = cmp.Or(t.Checkpoint, 5*time.Minute)
	t.Pack = cmp.Or(t.Pack, 10*time.Second)
	t.Again = cmp.Or(t.Again, 30*time.Second)
	t.Reset = cmp.Or(t.Reset, time.Minute)
	t.Release = cmp.Or(t.Release, 10*time.Second)
	t.Budget = cmp.Or(t.Budget, 15*time.Second)
	t.Alone = cmp.Or(t.Alone, 2*time.Minute)
	return t
}

// Processor processes deliveries. It is safe for concurrent use.
type Processor struct {
	Config

	briefs      *briefer
	admission   *admission
	isolation   *isolation
	checkpoints *checkpointer
	changes     *changeKeeper
	placer      *placer
	setUps      failedSetUps
}

// New returns a processor.
func New(c Config) *Processor {
	p := &Processor{Config: c}
	p.briefs = &briefer{store: c.Store, policy: c.Policy, sandboxed: c.Runner.Separated}
	p.admission = &admission{
		store: c.Store, budgets: c.Policy.Budgets, credential: c.Credential, credentials: c.Credentials,
		timing: c.Timing, log: c.Log,
	}
	p.isolation = &isolation{health: c.Health, alone: c.Timing.Alone, limit: c.Policy.Limit}
	p.changes = &changeKeeper{workspace: c.Workspace, redactor: c.Policy.Redactor, log: c.Log}
	p.checkpoints = &checkpointer{
		store: c.Store, workspace: c.Workspace, changes: p.changes, pack: c.Timing.Pack, log: c.Log,
	}
	p.placer = &placer{
		store: c.Store, workspace: c.Workspace, policy: c.Policy, checkpoints: p.checkpoints, publisher: c.Publisher,
		declarations: c.Declarations,
	}
	return p
}
