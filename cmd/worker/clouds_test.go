package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/cloudfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// inCloud replaces the model's own API by a cloud. Its SDK reads the environment of the worker's process.
func (w *world) inCloud(name string, life time.Duration) (s *cloudfake.Server) {
	w.Helper()
	delete(w.env, "ANTHROPIC_BASE_URL")
	delete(w.env, "ANTHROPIC_API_KEY")
	file := filepath.Join(w.TempDir(), "credential")
	var text []byte
	set := map[string]string{"HOME": w.TempDir()}
	switch name {
	case "bedrock":
		s = cloudfake.NewBedrock(w.model.URL(), life)
		set["CLAUDE_CODE_USE_BEDROCK"], set["AWS_REGION"] = "1", cloudfake.Region
		set["ANTHROPIC_BEDROCK_BASE_URL"] = s.URL()
		set["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = s.URL() + cloudfake.CredentialsPath
	case "vertex":
		var err error
		if s, text, err = cloudfake.NewVertex(w.model.URL(), life); err != nil {
			w.Fatal(err)
		}
		set["CLAUDE_CODE_USE_VERTEX"], set["ANTHROPIC_VERTEX_PROJECT_ID"], set["CLOUD_ML_REGION"] =
			"1", cloudfake.Project, cloudfake.VertexRegion
		set["ANTHROPIC_VERTEX_BASE_URL"] = s.URL() + "/v1"
		set["GOOGLE_APPLICATION_CREDENTIALS"] = file
	case "foundry":
		s, text = cloudfake.NewFoundry(w.model.URL(), life)
		set["CLAUDE_CODE_USE_FOUNDRY"], set["ANTHROPIC_FOUNDRY_BASE_URL"] = "1", s.URL()+"/anthropic"
		set["AZURE_TENANT_ID"], set["AZURE_CLIENT_ID"], set["AZURE_CLIENT_SECRET"] =
			cloudfake.Tenant, cloudfake.Client, cloudfake.ClientSecret
		set["AZURE_AUTHORITY_HOST"], set["SSL_CERT_FILE"] = s.URL(), file
	}
	w.Cleanup(s.Close)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		w.Fatal(err)
	}
	maps.Copy(w.env, set)
	return s
}

// collecting is a command that prints all that a curious agent finds.
const collecting = `env; cat /tmp/TestClouds*/*/credential 2>/dev/null; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\0' '\n'; find ~ "$TMPDIR" . -type f 2>/dev/null | xargs cat 2>/dev/null | head -c 500000`

// A run asks the model in each cloud. The worker signs its requests, with credentials that expire while it runs, and
// neither it nor Redis and the logs have any of them. A cloud that is asked too much is asked again. A question of a
// run that is stopped is withdrawn.
//
// `make bench-clouds` sets CLOUD_MINUTES: the run then takes as long, with credentials that expire every 20 s.
func TestClouds(t *testing.T) {
	t.Parallel()
	minutes, _ := strconv.Atoi(os.Getenv("CLOUD_MINUTES"))
	life, waits, throttled := 2*time.Second, 1, 1
	if minutes > 0 {
		life, waits, throttled = 20*time.Second, minutes*60/4, 0
	}
	for _, name := range []string{"bedrock", "vertex", "foundry"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			turns := []modelfake.Turn{{Tools: []modelfake.ToolCall{{
				Name: "Bash", Input: map[string]string{"command": collecting},
			}}, Usage: modelfake.Usage{Input: 1000, Output: 30}}}
			for range waits {
				turns = append(turns,
					modelfake.Turn{Tools: []modelfake.ToolCall{{
						Name: "Bash", Input: map[string]string{"command": "sleep 4"},
					}}, Usage: modelfake.Usage{Input: 500, Output: 20}})
			}
			w.model.Answer("total", append(turns, modelfake.Turn{
				Text: "The total is fine.", Usage: modelfake.Usage{Input: 10, Output: 7},
			})...)
			s := w.inCloud(name, life)
			s.Throttle(throttled)
			base := w.frontDoor()
			w.process()
			root := w.mention("is the total right?", "")
			for begun := time.Now(); time.Since(begun) < time.Duration(2*minutes)*time.Minute &&
				len(w.finals(root)) == 0; {
				<-time.After(time.Second)
			}
			if got := w.answers(root, 1)[0]; !strings.Contains(got, "The total is fine.") {
				t.Fatalf("%s", got)
			}
			var list struct {
				Tasks []struct {
					Ending struct{ Result struct{ API agent.API } }
				}
			}
			if err := json.Unmarshal([]byte(w.get(base+"/api/tasks")), &list); err != nil {
				t.Fatal(err)
			}
			if used := list.Tasks[0].Ending.Result.API; used.Usage.Input != int64(1010+500*waits) ||
				used.Usage.Output != int64(37+20*waits) || used.CostUSD == 0 {
				t.Errorf("the gateway counted %+v", used)
			}
			questions, credentials, refused := s.Asked()
			t.Logf("%s: %d questions with %d credentials, %d refused", name, questions, credentials, len(refused))
			if questions < 2+waits || credentials < 2 || len(refused) != throttled {
				t.Errorf("%d questions with %d credentials; refused: %q", questions, credentials, refused)
			}
			if name == "bedrock" {
				asked := make(chan struct{}, 1)
				w.model.Answer("for ever", modelfake.Turn{Started: asked, Gate: make(chan struct{})})
				root := w.mention("think for ever", "")
				<-asked
				w.mention("stop", root)
				w.answers(root, 1)
				<-s.Left()
			}
			w.issued = append(s.Secrets(), cloudfake.ClientSecret)
			if name == "vertex" {
				file, err := os.ReadFile(w.env["GOOGLE_APPLICATION_CREDENTIALS"])
				if err != nil {
					t.Fatal(err)
				}
				w.issued = append(w.issued, string(file))
			}
			w.secretsStayInside()
		})
	}
}
