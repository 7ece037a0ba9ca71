package agent

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake/clitest"
	"github.com/errand-fleet/errand/internal/transcript"
)

// A person continues a run's conversation with the CLI itself, in another directory.
func TestCLIContinuesAPortableSession(t *testing.T) {
	t.Parallel()
	model := newModel(t, bash("true"), modelfake.Turn{Text: "You said {{prompt}}; that makes {{turns}}."})
	model.Answer("red", modelfake.Turn{Text: "You said {{prompt}}; that makes {{turns}}."})
	first := runCLI(t, newCLI(t, model), Spec{ID: "first", Prompt: Message{Text: "blue"}, Profile: Write}, &host{})
	data, err := first.Session.Portable(nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := transcript.Unpack(data)
	if err != nil {
		t.Fatal(err)
	}
	config, dir := t.TempDir(), t.TempDir()
	if err := a.Place(config, config, first.Session.ID, dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), clitest.Find(t), "--resume", first.Session.ID, "--print", "--verbose",
		"--output-format", "stream-json", "red")
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + config, "CLAUDE_CONFIG_DIR=" + config, "ANTHROPIC_BASE_URL=" + model.URL(),
		"ANTHROPIC_API_KEY=sk-ant-test-credential", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "You said red; that makes 2.") {
		t.Errorf("%s, %v", out, err)
	}
}
