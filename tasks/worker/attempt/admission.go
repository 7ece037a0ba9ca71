package attempt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/jitter"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

// All runs share one credential, so the fleet shares what one run learns about it: a usage limit stops all starts, an
// overload slows them down. Live runs continue, because the CLI retries by itself. A limit that is lifted only after
// horizon does not stop other starts: each task then ends at once with that reason, and the first one finds out if
// the account's plan was upgraded.

// admission decides whether a claimed task may start now. It is safe for concurrent use.
type admission struct {
	store       *store.Store
	budgets     rights.Budgets
	credential  string
	credentials *Credentials
	timing      Timing
	log         *slog.Logger
}

// heldError postpones a task until a limit of the credential is lifted. Its thread gets a message about it.
type heldError struct{ *tasks.ErrLater }

func (e heldError) Unwrap() error { return e.ErrLater }

// admit returns nil if a claimed task may start, and otherwise postpones it.
func (a *admission) admit(run *run) error {
	if a.credential == "" {
		return nil
	}
	err := a.store.Credentials.Admit(run.Ctx, a.credential)
	held, ok := errors.AsType[*store.Held](err)
	if !ok {
		return err
	}
	tell := fmt.Sprintf("held-%d", held.At.Unix())
	if held.Why == whyAway {
		tell = outageKey // the hold is renewed until the model is back
	}
	at := held.At.Add(turn(held.Interval, time.Since(run.Claim.Record().Created)))
	if held.Why == "" {
		return tasks.Later(time.Until(at), "runs start one after the other, because the model had too many requests")
	}
	return heldError{&tasks.ErrLater{At: at, Why: held.Why, Tell: tell}}
}

// turn returns how long after the next possible start a task tries again. It is a random part of the interval, so
// that the waiting tasks come one after the other. The longer a task has waited, the shorter the interval, so that
// newer tasks do not overtake it again and again.
func turn(interval, waited time.Duration) time.Duration {
	if waited > 0 {
		interval = time.Duration(float64(interval) * float64(interval) / float64(interval+waited))
	}
	return jitter.UpTo(interval)
}

// recordThrottle records what the end of a run says about the credential, for the whole fleet.
func (a *admission) recordThrottle(run *run) {
	if a.credential != "" {
		err := a.throttle(run, run.result)
		if run.second.Error != nil {
			err = errors.Join(err, a.throttle(run, run.second))
		}
		logline.Warn(a.log, err, "record the state of the credential", "run", run.Claim.ID())
	}
}

func (a *admission) throttle(run *run, r agent.Result) error {
	credentials := a.store.Credentials
	if lifted := a.timing.lifted(r); !lifted.IsZero() {
		if a.credentials.several() {
			return nil // others may be used: each worker leaves out the one that cannot
		}
		return credentials.Hold(run.Detached, a.credential, lifted, a.timing.Release, clause(r))
	}
	if refused(r) {
		return credentials.Refuse(run.Detached, a.credential, clause(r))
	}
	if r.API != nil && !r.API.FreeAt.IsZero() {
		return nil // likewise
	}
	if r.Error != nil && throttles(r.Error.Class) && (r.API == nil || r.API.Throttled()) {
		return credentials.Slow(run.Detached, a.credential)
	}
	if r.Outcome == agent.Done {
		return errors.Join(credentials.Ease(run.Detached, a.credential), a.denyOutage(run))
	}
	return nil
}

// whyAway is why no run starts while the model is away.
const whyAway = "the model could not be reached or is overloaded"

// holdStarts holds back all starts with the credential until a task is tried again that has found the model away in
// each of its attempts. Then they come one after the other, so that the first is a probe. One task alone holds back no
// others: its request may be what fails, or the network of its worker. Only what the run's gateway saw counts, because
// a tool can forge what the CLI says.
func (a *admission) holdStarts(run *run, next *retryError) {
	r := run.result
	if a.credential == "" || next.Parked != parkOutage || a.credentials.several() {
		return
	}
	if r.API != nil && !r.API.Throttled() {
		return
	}
	confirmed, err := a.confirmOutage(run)
	if err == nil && confirmed {
		err = a.store.Credentials.Hold(run.Detached, a.credential, next.At, a.timing.Release, whyAway)
	}
	logline.Warn(a.log, err, "record the state of the credential", "run", run.Claim.ID())
}

// outageReport is the latest task that found the model away in each of its attempts. It is the zero value if a run with
// the same credential has ended well since.
type outageReport struct {
	Task string    `json:"task,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// outageMemo returns the name of the memo with a credential's outageReport.
func outageMemo(credential string) string { return "outage/" + credential }

// confirmOutage notes that a run's task found the model away. It reports whether another task did lately, and no run
// has ended well since.
func (a *admission) confirmOutage(run *run) (confirmed bool, err error) {
	own := outageReport{run.Claim.ID(), time.Now()}
	err = a.store.Memos.ChangeMemo(run.Detached, outageMemo(a.credential),
		func(body json.RawMessage) (json.RawMessage, error) {
			var last outageReport
			_ = json.Unmarshal(body, &last) // without it, nothing is known
			confirmed = last.Task != "" && last.Task != own.Task && own.At.Sub(last.At) < horizon
			return format.JSON(own), nil
		})
	return confirmed, err
}

// denyOutage notes that a run ended well.
func (a *admission) denyOutage(run *run) error {
	return a.store.Memos.ChangeMemo(run.Detached, outageMemo(a.credential),
		func(body json.RawMessage) (json.RawMessage, error) {
			if none := format.JSON(outageReport{}); body != nil && !bytes.Equal(body, none) {
				return none, nil
			}
			return nil, nil
		})
}

// refused reports whether the model refused the credential or required payment, according to the run's gateway if it
// had one.
func refused(r agent.Result) bool {
	if r.Error == nil || r.Error.Class != agent.ClassAuth && r.Error.Class != agent.ClassBilling {
		return false
	}
	// "credit balance is too low"
	return r.API == nil || r.API.Refused() ||
		r.Error.Class == agent.ClassBilling && r.API.Status == http.StatusBadRequest
}

// throttles reports whether a failure means that the model wants fewer requests.
func throttles(c agent.Class) bool { return c == agent.ClassOverloaded || c == agent.ClassRateLimit }

// throttleReporter returns the function that a live run calls when the model throttles it. A goroutine, which ends with
// the run's claim, informs the store; calls that come meanwhile count as one.
func (a *admission) throttleReporter(run *run) func() {
	if a.credential == "" {
		return func() {}
	}
	news := make(chan struct{}, 1)
	run.Go(func() {
		for {
			select {
			case <-news:
			case <-run.Life.Done():
				return
			}
			if err := a.store.Credentials.Slow(run.Life, a.credential); err != nil && run.Life.Err() == nil {
				a.log.Warn("record the state of the credential", "run", run.Claim.ID(), "err", err)
			}
		}
	})
	return func() { signal(news) }
}

// expectedUSD is reserved for a task without a maximum, so that many at once do not exceed a budget.
const expectedUSD = 1

// whyReserved is why a task waits for a budget that is not used up yet.
const whyReserved = "the day's budget is reserved by other runs"

// afford reserves the expected cost of a task that is about to run, and returns the cost at which to stop the run; 0
// means no limit. It refuses the task with an *InputError if a budget is used up, and postpones it while others have
// reserved the rest.
func (a *admission) afford(r *run, t tasks.Task) (maxUSD float64, err error) {
	a.credentials.Share(r.Ctx)
	b := a.budgets
	maxUSD = t.Options.MaxUSD
	if maxUSD > 0 {
		if maxUSD -= r.Claim.Record().Cost; maxUSD <= 0 { // its earlier runs have used it up
			e := agent.NewError(agent.ClassBudget, "spent before the run")
			e.User = b.Exhausted(t.Options.MaxUSD, 0, t.Options.MaxUSD)
			return 0, e
		}
	}
	left, err := r.Claim.Reserve(r.Ctx, cmp.Or(maxUSD, expectedUSD), b.Daily()...)
	if over, ok := errors.AsType[*store.OverBudget](err); ok {
		if over.Spent < over.Budget {
			return 0, tasks.Later(a.timing.Budget, whyReserved) // do not reveal what others have spent
		}
		return 0, b.Refusal(over)
	}
	if err != nil {
		return 0, err
	}
	return rights.LowerLimit(maxUSD, left), nil
}

// settle records what a run has cost, however it ended. An interrupted run has a cost, too.
func (a *admission) settle(r *run) tasks.Bill {
	rec := r.Claim.Record()
	bill := tasks.Bill{Earlier: rec.Cost, Crashes: rec.Crashes}
	var near []store.Spending
	_, err := r.Persist("settle", func() (err error) {
		near, err = r.Claim.Spend(r.Detached, expense(r.result), a.budgets.Daily()...)
		return err
	})
	if err != nil {
		a.log.Error("settle cost", "run", rec.ID, "usd", r.result.CostUSD, "err", err)
	}
	if r.result.API != nil && r.result.API.Credential != "" {
		a.credentials.Share(r.Detached)
	}
	for _, n := range near {
		a.log.Warn("budget nearly used up", "run", rec.ID, "scope", n.Scope, "spent", n.Spent, "budget", n.Budget)
		bill.Near = append(bill.Near, rights.BudgetName(n.Scope)+": "+display.Dollars(n.Spent)+" of "+
			display.Dollars(n.Budget))
	}
	return bill
}

// expense converts a run's result for the store.
func expense(r agent.Result) store.Expense {
	e := store.Expense{USD: r.CostUSD, Model: format.OneWord(r.Model), Tokens: store.Tokens(r.Usage)}
	if r.API != nil {
		e.Credential = r.API.Credential
	}
	return e
}
