package agent

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/sandbox"
)

// The lines of Spec.Start run before the program of a run, under the same keeper: what they leave running, such as a
// database, lives as long as the run. A shell runs them and then becomes the program. They have none of its pipes,
// which carry the protocol and the credential.

const (
	startFile   = "start"         // the lines, in the run's directory
	serviceFile = "services"      // the script that runs them
	servicesMax = 5 * time.Minute // for all lines
	servicesBad = 97              // exit code of the script if they fail
)

// services starts what a run needs besides its program. It ends with the end of the lines' output if they fail.
var services = fmt.Sprintf(`log=$TMPDIR/start.log
timeout -k 5 %d bash -e "${0%%/*}/%s" </dev/null >"$log" 2>&1 3<&-
code=$?
[ $code = 0 ] && exec "$@"
tail -n 20 "$log" >&2
echo "start ended with exit code $code" >&2
exit %d
`, int(servicesMax.Seconds()), startFile, servicesBad)

// withServices makes an order run the lines of s before its program.
func (r *Runner) withServices(o *keeper.Order, s Spec, p sandbox.Place) error {
	if len(s.Start) == 0 {
		return nil
	}
	root, err := filepath.Rel(s.start(), s.Dir) // dots and slashes only
	if err != nil {
		return fmt.Errorf("find where to start the commands: %w", err)
	}
	lines := "cd " + root + "\n" + strings.Join(s.Start, "\n") + "\n"
	for name, text := range map[string]string{startFile: lines, serviceFile: services} {
		if err := os.WriteFile(filepath.Join(o.RunDir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the commands to start: %w", err)
		}
	}
	o.Args = append([]string{"bash", filepath.Join(p.Root, serviceFile), o.Path}, o.Args[1:]...)
	o.Path = cmp.Or(onPath("bash", r.getenv("PATH")), "/bin/bash")
	return nil
}

// servicesFailed returns the error of a run whose lines of Start have failed, or nil.
func servicesFailed(exit keeper.Exit, stderr string) *Error {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	end := lines[len(lines)-1]
	if exit.Code != servicesBad || !strings.HasPrefix(end, "start ended with exit code ") {
		return nil
	}
	e := NewError(ClassWorkspace, strings.Join(lines, "\n"))
	e.User = "The services of the repository could not be started: " + end + "."
	if len(lines) > 1 {
		e.User += " Its last line: " + lines[len(lines)-2]
	}
	e.Remedy = "Correct start in .github on the base branch, or in errand.yaml."
	return e
}
