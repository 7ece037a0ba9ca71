package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// A worker is killed in the middle of its work. Another one with an empty disk continues: the same session, the whole
// conversation, the commits, the files, and the tool result that was too long for a message.
func TestWorkGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.interrupted()
	w.env["ERRAND_STATE_DIR"] = filepath.Join(t.TempDir(), "another")
	w.process()
	if final := w.answers(root, 1)[0]; !strings.Contains(final, "They are paid.") {
		t.Errorf("final message: %s", final)
	}
	calls := w.model.Requests()
	resumed, last := calls[len(calls)-2], calls[len(calls)-1]
	if resumed.Prompts != 2 || !strings.Contains(string(resumed.Body), "pay the invoices") {
		t.Errorf("the resumed run began with %d prompts, the last of them %q", resumed.Prompts, resumed.Text)
	}
	if !strings.Contains(resumed.Text, "last saved at") || !strings.Contains(resumed.Text, "/another/") {
		t.Errorf("the agent got: %s", resumed.Text)
	}
	const session = "X-Claude-Code-Session-Id"
	if id := calls[0].Header.Get(session); id == "" || last.Header.Get(session) != id {
		t.Errorf("session %s, before %s", last.Header.Get(session), id)
	}
	for _, want := range []string{
		"log ignore logs, status  M total.go;?? new.txt;, files package total;// two;mine;",
		`CLAUDE.md\nnew.txt\ntotal.go`, // and not build.log
		`.txt <==\n20000`,
	} {
		if !strings.Contains(string(last.Body), want) {
			t.Errorf("%q is not what was found", want)
		}
	}
}

// interrupted mentions the bot and kills its worker in the middle of the work.
func (w *world) interrupted() (root string) {
	w.Helper()
	thinking := make(chan struct{}, 1)
	w.model.Answer("pay the invoices",
		bash("echo '*.log' > .gitignore && git add .gitignore && git commit -qm 'ignore logs' && echo '// two' >> total.go && "+
			"echo mine > new.txt && echo noise > build.log && seq 1 20000"),
		modelfake.Turn{Started: thinking, Hang: true})
	w.model.Answer("You were interrupted",
		bash(`echo "log $(git log -1 --format=%s), status $(git status --porcelain | tr '\n' ';'), files $(cat total.go new.txt | tr '\n' ';')"; ls; `+
			`tail -vn 1 "$CLAUDE_CONFIG_DIR"/projects/*/*/tool-results/*`),
		modelfake.Turn{Text: "They are paid."})
	w.frontDoor()
	worker := w.process()
	root = w.mention("pay the invoices", "")
	<-thinking
	w.checkpointed(w.taskID(root))
	if err := worker.Process.Kill(); err != nil {
		w.Fatal(err)
	}
	_ = worker.Wait()
	return root
}

// checkpointed waits for a checkpoint that was started after now (the second one to be saved) and that contains the
// messages of absorbed tasks.
func (w *world) checkpointed(id string, absorbed ...string) {
	w.Helper()
	client := w.admin()
	ctx := await.Context(w)
	seen := map[string]bool{}
	for holds := ""; len(seen) < 3 || holds != strings.Join(absorbed, " "); { // the present ones, and two more
		fields, err := client.HMGet(ctx, "errand:checkpoint:"+id, "at", "absorbed").Result()
		if err != nil || ctx.Err() != nil {
			w.Fatalf("wait for a checkpoint: %v", errors.Join(err, ctx.Err()))
		}
		if at, ok := fields[0].(string); ok {
			seen[at] = true
		}
		holds, _ = fields[1].(string)
	}
}
