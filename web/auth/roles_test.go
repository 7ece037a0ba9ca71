package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// A list asks for each of its tasks whether the visitor may read the repository. A forge that hangs delays it once,
// however many repositories there are.
func TestForgeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs, asked := true, 0
		a := &Access{
			Grants: []Grant{{Role: tasks.Viewer, People: []string{"*@acme.test"}}},
			Forge: func(ctx context.Context, _, _ string) (bool, error) {
				asked++
				if !hangs {
					return true, nil
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return false, errors.New("no answer")
			},
		}
		ann := Identity{Name: "ann", Email: "ann@acme.test", Login: "ann"}
		v := a.visitor(ann, "test", slog.New(slog.DiscardHandler))
		left, cancel := context.WithCancel(t.Context())
		cancel()
		if role := v.In(left, "acme/api"); role != tasks.Anyone {
			t.Errorf("a visitor who has left has the role %v", role)
		}
		begun := time.Now()
		for n := range 100 {
			if role := v.In(t.Context(), fmt.Sprint("acme/api", n%5)); role != tasks.Anyone {
				t.Fatalf("the role is %v while the forge does not answer", role)
			}
		}
		if took := time.Since(begun); asked != 2 || took != askTime {
			t.Errorf("100 tasks asked the forge %d times and took %s", asked-1, took)
		}
		hangs = false
		<-time.After(errorTime)
		if role := v.In(t.Context(), "acme/api0"); role != tasks.Viewer {
			t.Errorf("the role is %v after the forge has recovered", role)
		}
	})
}
