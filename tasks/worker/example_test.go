package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker"
	"github.com/errand-fleet/errand/workspace"
)

// printer is a source that prints answers.
type printer struct{ closed chan struct{} }

func (printer) Name() string                                             { return "printer" }
func (printer) Listen(context.Context, *http.ServeMux, *desk.Desk) error { return nil }
func (printer) Capabilities() tasks.Capabilities                         { return tasks.Capabilities{} }

func (printer) Brief(context.Context, tasks.Task, string) (tasks.Brief, error) {
	return tasks.Brief{}, nil
}
func (p printer) Open(context.Context, tasks.Task) (tasks.Report, error) { return p, nil }
func (printer) Update(agent.Event)                                       {}
func (p printer) Close(_ context.Context, e tasks.Ending) error {
	fmt.Println(e.Kind+":", e.Result.Text)
	close(p.closed)
	return nil
}

// echo is a runner that answers each prompt with the prompt. Programs use an *agent.Runner.
type echo struct{}

func (echo) Run(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
	return agent.Result{Outcome: agent.Done, Text: "echo " + s.Prompt.Text}, nil
}

func (echo) Script(context.Context, agent.Script) (agent.Scripted, error) {
	return agent.Scripted{Outcome: agent.Done}, nil
}

func (echo) Health(context.Context) agent.Health                    { return agent.Health{OK: true} }
func (echo) Sweep(context.Context) error                            { return nil }
func (echo) Offer(context.Context, agent.Spec) (agent.Offer, error) { return agent.Offer{}, nil }
func (echo) Separated() bool                                        { return false }
func (echo) Credentials() map[string]agent.CredentialState          { return nil }
func (echo) Learn(map[string]agent.CredentialState)                 {}

// A worker runs the tasks that a desk accepts, and its sources post the answers.
func Example() {
	if err := runOneTask(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: answered: echo hello
}

func runOneTask(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "worker")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	redisPath, ok := redistest.Find()
	if !ok {
		return errors.New("redis-server is not on PATH")
	}
	server, err := redisserver.Start(ctx, redisserver.Config{Path: redisPath, Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	opt, err := redis.ParseURL(server.URL())
	if err != nil {
		return err
	}
	client := redis.NewClient(opt)
	defer client.Close()
	st, err := store.New(store.Config{Redis: client})
	if err != nil {
		return err
	}
	space, err := workspace.New(workspace.Config{Dir: filepath.Join(dir, "work"), URL: func(repo string) string {
		return "https://github.com/" + repo
	}})
	if err != nil {
		return err
	}
	queue, policy, source := queue.New(st, client, time.Hour), rights.Policy{Limit: time.Hour},
		printer{make(chan struct{})}
	w, err := worker.New(worker.Config{
		Store: st, Queue: queue, Runner: echo{}, Workspace: space, Sources: []tasks.Source{source},
		Policy: policy, Slots: 2,
	})
	if err != nil {
		return err
	}
	_, err = desk.New(st, queue, policy, nil).Submit(ctx, tasks.Task{
		ID: tasks.NewID(time.Now(), "printer", "1"), Source: "printer", Kind: "message", Thread: "printer/1",
		Class: tasks.Interactive, Profile: agent.Read, Actor: "ann", Prompt: "hello",
	})
	if err != nil {
		return err
	}
	running, drain := context.WithCancel(ctx)
	go func() {
		select {
		case <-source.closed:
		case <-ctx.Done():
		}
		drain()
	}()
	return w.Run(running)
}
