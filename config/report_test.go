package config

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestReportShowsNoSecret(t *testing.T) {
	t.Parallel()
	c := loadFull(t)
	given := 0
	for _, s := range c.Settings() {
		if s.Given {
			given++
		}
		if leaks(s.Value) || s.Secret && s.Value != "" && s.Value != redacted {
			t.Errorf("%s is shown as %s", s.Name, s.Value)
		}
	}
	if given != len(c.Given) {
		t.Errorf("%d are given, want %d", given, len(c.Given))
	}
	published := c.Published()
	if text := fmt.Sprint(published); leaks(text) || !strings.Contains(text, "SLACK_BOT_TOKEN:"+redacted) {
		t.Error(text)
	}
	if c.Routing.Limits.User++; c.Published()[File] == published[File] {
		t.Error("another errand.yaml has the same digest")
	}
	if got := (Config{}).Published()[File]; got != "none" {
		t.Errorf("without errand.yaml it is %q", got)
	}
}

// A given 0, which is no limit, is not the same as none.
func TestZeroIsShown(t *testing.T) {
	t.Parallel()
	vars := full()
	vars["ERRAND_RUN_PROCESSES"] = "0"
	c, err := load(getenv(vars), machine(t, fullFiles), RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil || !strings.Contains(printed.String(), "\nERRAND_RUN_PROCESSES=0\n") {
		t.Errorf("printed %s, %v", &printed, err)
	}
	if got := c.Published()["ERRAND_RUN_PROCESSES"]; got != "0" {
		t.Errorf("published %q", got)
	}
}
