package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/webhook"
)

// A delivery that was given up is listed and sent again through a real front door.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if code, out, errs := f.run("webhooks"); code != 0 || out != "" || errs != "All webhooks were delivered.\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	noted := webhook.New(webhook.Config{Redis: f.redis, Webhooks: []webhook.Webhook{{Name: "ops"}}})
	at := time.Now()
	if err := noted.Note(t.Context(), tasks.Task{ID: "1-a"}, tasks.Answered, at); err != nil {
		t.Fatal(err)
	}
	stop, err := webhook.New(webhook.Config{Redis: f.redis}).Deliver() // a front door without this webhook
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("ops.1-a.%d", at.UnixMicro())
	for {
		code, out, errs := f.run("webhooks")
		if code != 0 || t.Context().Err() != nil {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
		if out != "" {
			for _, want := range []string{id, "1-a", "given up", "errand.yaml has no webhook ops"} {
				if !strings.Contains(out, want) {
					t.Errorf("%s lacks %s", out, want)
				}
			}
			break
		}
	}
	stop()
	if code, out, errs := f.run("webhooks", "replay", id); code != 0 || out != id+" is sent again\n" {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	if code, out, _ := f.run("webhooks", "--json"); code != 0 || !strings.Contains(out, `"undelivered": []`) {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, _, errs := f.run("webhooks", "replay", "none"); code != 1 ||
		!strings.Contains(errs, "No delivery with this ID has failed") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, _, _ := f.run("webhooks", "replay"); code != 2 {
		t.Errorf("exit %d", code)
	}
}
