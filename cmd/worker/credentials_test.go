package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/cloudfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// Tasks run in another account of a cloud when the quota of the first one is used up. Requests are signed for the
// account that is in use, and the agent finds neither credential.
func TestCloudsWithTwoAccounts(t *testing.T) {
	t.Parallel()
	const first, second = "AKIAFIRSTACCOUNT0001", "AKIASECONDACCOUNT002"
	w := newWorld(t)
	w.model.Answer("", bash(collecting), modelfake.Turn{Text: "Answered."})
	s := cloudfake.NewBedrock(w.model.URL(), time.Hour)
	t.Cleanup(s.Close)
	s.Account(first, "aws-secret-of-the-first", true)
	s.Account(second, "aws-secret-of-the-second", false)
	delete(w.env, "ANTHROPIC_API_KEY")
	delete(w.env, "ANTHROPIC_BASE_URL")
	file, profiles := filepath.Join(t.TempDir(), "credential"), ""
	for name, id := range map[string]string{"first": first, "second": second} {
		profiles += fmt.Sprintf("[%s]\naws_access_key_id = %s\naws_secret_access_key = aws-secret-of-the-%s\naws_session_token = token-of-%s\n", name, id, name, id)
	}
	w.write(file, profiles)
	w.env["HOME"], w.env["AWS_SHARED_CREDENTIALS_FILE"], w.env["ANTHROPIC_BEDROCK_BASE_URL"] =
		t.TempDir(), file, s.URL()
	w.write(w.env["ERRAND_CONFIG"], "repositories: {"+repo+": {trusted: true}}\nchannels: {"+
		channel+": {repository: "+repo+`}}
credentials:
  - {name: first, provider: bedrock, region: `+cloudfake.Region+`, profile: first}
  - {name: second, provider: bedrock, region: `+cloudfake.Region+`, profile: second}
`)
	base := w.frontDoor()
	w.process()
	for _, text := range []string{"one", "two"} {
		if got := w.answers(w.mention(text, ""), 1)[0]; !strings.Contains(got, "Answered.") {
			t.Fatalf("%s", got)
		}
	}
	if a, b := s.AskedBy(first), s.AskedBy(second); a != 0 || b < 4 {
		t.Errorf("accepted %d questions of the first account, and %d of the second", a, b)
	}
	_, _, refused := s.Asked()
	if tasks := w.get(base + "/api/tasks"); strings.Count(tasks, `"credential": "second"`) != 2 ||
		len(refused) > 2 {
		t.Errorf("refused %q, tasks: %s", refused, tasks)
	}
	w.issued = append(w.issued, first, second, "aws-secret-of-the-first", "aws-secret-of-the-second")
	w.secretsStayInside()
}
