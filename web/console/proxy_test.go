package console

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// A proxy in front takes more than the console does, which says what is wrong with larger messages.
func TestProxiesTakeMessages(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"deploy/nginx.conf", "deploy/helm/errand/values.yaml", "docs/deploy.md"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		limit := regexp.MustCompile(`(?:client_max_body_size |proxy-body-size: )(\d+)m`).FindSubmatch(text)
		if limit == nil {
			t.Fatalf("%s has no limit", file)
		}
		if megabytes, _ := strconv.Atoi(string(limit[1])); megabytes<<20 <= maxMessage {
			t.Errorf("%s: %d MB, and errand takes %d bytes", file, megabytes, maxMessage)
		}
	}
}
