package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Runs that take too many processes, too much memory, too much disk, or all processors end alone: ten others, which
// were there the whole time, finish.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	inSandbox(t, "shell", func(t *testing.T, b *bench) {
		delete(b.cfg.Env, "AGENT_TEST_ALIVE") // which runs in other directories do not see
		b.cfg.MaxProcesses, b.cfg.MaxMemory, b.cfg.MaxDisk = 200, 500<<20, 100<<20
		start := func(name, script string) (dir string, result func() Result) {
			dir = filepath.Join(b.dir, name)
			if err := errors.Join(os.Mkdir(dir, 0o700), syscall.Mkfifo(filepath.Join(dir, "up"), 0o600),
				syscall.Mkfifo(filepath.Join(dir, "go"), 0o600)); err != nil {
				t.Fatal(err)
			}
			ended := make(chan Result, 1)
			go func() {
				res, err := b.Run(t.Context(), Spec{
					ID: unique("neighbours." + name), Dir: dir, Profile: Write, Limit: 2 * time.Minute,
					Prompt: Message{Text: script},
				}, &host{})
				if err != nil {
					t.Error(err)
				}
				ended <- res
			}()
			return dir, sync.OnceValue(func() Result { return <-ended })
		}
		var dirs []string
		var others []func() Result
		for n := range 10 {
			dir, result := start(fmt.Sprint(n), "echo up >up; read x <go; echo done")
			dirs, others = append(dirs, dir), append(others, result)
		}
		for _, dir := range dirs {
			if up, err := os.ReadFile(filepath.Join(dir, "up")); string(up) != "up\n" {
				t.Fatal(up, err)
			}
		}
		results := map[Class]func() Result{}
		for class, script := range map[Class]string{
			ClassProcesses: bomb,
			ClassMemory:    hold + "for i in {1..9}; do setsid bash -c 'hold 100' & done; wait",
			ClassDisk:      "head -c 400M /dev/zero >big; sleep 1000",
			"":             "for i in {1..8}; do while :; do :; done & done; read -t 3 -u 8 8<> <(:); kill $(jobs -p); echo done",
		} {
			_, results[class] = start("hungry"+strings.ReplaceAll(string(class), "_", "-"), script)
		}
		for class, result := range results {
			res := result()
			switch {
			case class == "" && (res.Outcome != Done || !strings.HasPrefix(res.Text, "done")):
				t.Errorf("the busy one: %+v, %v", res, res.Error)
			case class != "" && (res.Outcome != Failed || res.Error.Class != class):
				t.Errorf("%s: %+v, %v", class, res, res.Error)
			}
		}
		for n, result := range others {
			if err := os.WriteFile(filepath.Join(dirs[n], "go"), []byte("go\n"), 0o600); err != nil {
				t.Error(err)
			}
			if res := result(); res.Outcome != Done || !strings.HasPrefix(res.Text, "done") {
				t.Errorf("neighbour %d: %+v, %v", n, res, res.Error)
			}
		}
	})
}
