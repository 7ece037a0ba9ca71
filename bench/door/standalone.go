package door

import (
	"context"
	"os"
	"path/filepath"

	"github.com/errand-fleet/errand/agent"
)

// Standalone starts a whole system in one process, with the real CLI and further settings. Its state is below dir.
func Standalone(ctx context.Context, bin, dir string, env ...string) (*Server, error) {
	cli, err := agent.Find("", os.Getenv("PATH"))
	if err != nil {
		return nil, err
	}
	return Program{
		Name: "worker", Args: []string{filepath.Join(bin, "worker"), "-standalone"}, Dir: dir,
		Env: append([]string{
			"ERRAND_STATE_DIR=" + filepath.Join(dir, "state"), "ERRAND_HTTP_ADDR=127.0.0.1:0",
			"ERRAND_WORKER_ADDR=127.0.0.1:0", "ERRAND_CONSOLE_TOKEN=" + Token, "ERRAND_CLAUDE=" + cli,
			"ERRAND_ALLOW_ROOT=true",
		}, env...),
	}.Serve(ctx)
}
