package worker

import (
	"context"
	"errors"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/google/go-cmp/cmp"
)

// Pictures that come with a message are passed to the agent with it: in the prompt of a run, and in a message that a
// live run absorbs.
func TestPicturesReachTheAgent(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	absorbed := make(chan agent.Message, 1)
	started := make(chan struct{})
	f.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		close(started)
		if m, ok := h.Next(ctx); ok {
			absorbed <- m
		}
		return answer("done"), nil
	}
	f.worker()
	first, second := f.task("a", "one"), f.task("a", "two")
	first.Pictures = []tasks.Picture{
		{Name: "a.png", Type: "image/png", Data: []byte("first")},
		{Name: "b.gif", Type: "image/gif", Data: []byte("second")},
	}
	second.Pictures = []tasks.Picture{{Name: "c.png", Type: "image/png", Data: []byte("third")}}
	f.submit(first)
	<-started
	f.submit(second)
	want := []agent.File{
		{Name: "a.png", Type: "image/png", Data: []byte("first")},
		{Name: "b.gif", Type: "image/gif", Data: []byte("second")},
	}
	if diff := cmp.Diff(want, f.agent.specs()[0].Prompt.Files); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]agent.File{{Name: "c.png", Type: "image/png", Data: []byte("third")}},
		(<-absorbed).Files); diff != "" {
		t.Error(diff)
	}
	f.ending(first.ID)
	s, err := f.desk.Status(t.Context(), first.ID)
	if err != nil || len(s.Task.Pictures) != 2 || s.Task.Pictures[0].Data != nil {
		t.Errorf("the record has %+v, %v", s.Task.Pictures, err)
	}
}

// Too many or too large pictures are refused with the reason before anything is stored.
func TestTooManyPictures(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	many, large := f.task("a", "one"), f.task("b", "two")
	many.Pictures = make([]tasks.Picture, agent.MaxPictures+1)
	large.Pictures = []tasks.Picture{{Data: make([]byte, 5<<20)}, {Data: make([]byte, 5<<20)}}
	for _, task := range []tasks.Task{many, large} {
		_, err := f.desk.Submit(t.Context(), task)
		if _, ok := errors.AsType[*tasks.InputError](err); !ok {
			t.Errorf("%v", err)
		}
		if _, err := f.desk.Status(t.Context(), task.ID); !errors.Is(err, tasks.ErrNotFound) {
			t.Errorf("it was stored: %v", err)
		}
	}
}
