package attempt

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/place"
)

const (
	maxAttached = 20  // files of a run
	maxFileName = 100 // characters
)

// attacher lets the agent of one run attach files to its task. The store keeps them for the task's page, and a source
// that can show files posts them.
type attacher struct {
	redactor *agent.Redactor
	claim    *store.Claim
	task     tasks.Task
	post     func(ctx context.Context, t tasks.Task, name string, data []byte) error // nil: the source shows no files
	attached atomic.Int32
}

// attachments returns the agent's tool for attaching files, if its run may have something to show.
func (p *Processor) attachments(r *run, j job, where place.Place) []agent.Tool {
	a := &attacher{redactor: p.Policy.Redactor, claim: r.Claim, task: j.task}
	if can := j.source.Capabilities(); can.TalkAbout(j.task) {
		a.post = can.Attach
	}
	if j.task.Profile == agent.Untrusted || a.post == nil && j.task.Profile != agent.Write {
		return nil
	}
	type file struct {
		Path string `json:"path" jsonschema:"a file in your working directory"`
	}
	return []agent.Tool{agent.NewTool("attach_file",
		"Attach a file to the task for people, such as a picture of a page that you have changed, a report or a long "+
			"log. A later file replaces one of the same name."+browserHint(exec.LookPath),
		func(ctx context.Context, in file) (string, error) { return a.attach(ctx, where, in.Path) })}
}

// browserHint tells the agent how to make pictures of pages, if there is a program for it. The run's sandbox is that of
// the browser, too.
func browserHint(find func(program string) (string, error)) string {
	for _, program := range []string{"chromium-headless-shell", "chromium"} {
		if _, err := find(program); err == nil {
			return " To make a picture of a page: " + program +
				" --headless --no-sandbox --screenshot=FILE.png --window-size=1280,800 URL; look at it first."
		}
	}
	return ""
}

// attach stores and posts a file that the agent can read. It follows no link that leads out of the agent's directories.
func (a *attacher) attach(ctx context.Context, p place.Place, path string) (string, error) {
	data, err := p.Read(path)
	if err != nil {
		return "", err
	}
	if a.attached.Add(1) > maxAttached {
		return "", fmt.Errorf("at most %d files can be attached", maxAttached)
	}
	data = a.redactor.Bytes(data)
	name := untrusted.Short(a.redactor.String(filepath.Base(path)), maxFileName)

	err = a.claim.SaveLatest(ctx, tasks.FileLogs+name, data)
	if errors.Is(err, store.ErrTooLarge) && a.post != nil {
		err = nil // the thread has it
	}
	if err != nil {
		return "", fmt.Errorf("attach %s: %w", name, err)
	}
	if a.post == nil {
		return "Attached " + name + ".", nil
	}

	first, err := a.claim.First(ctx, "file-"+format.Hash(name, string(data)))
	if err != nil {
		return "", err
	}
	if !first { // an earlier attempt may or may not have arrived
		return "This file was already posted. If it is missing from the thread, post it under another name.", nil
	}
	if err := a.post(ctx, a.task, name, data); err != nil {
		return "", fmt.Errorf("attach %s: %w", name, err)
	}
	return "Attached " + name + ".", nil
}
