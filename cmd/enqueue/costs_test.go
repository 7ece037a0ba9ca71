package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/api"
)

func TestCosts(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	spend := func(model string, usd float64) {
		t.Helper()
		c := f.Claim(f.submit("x"))
		if _, err := c.Spend(t.Context(), store.Expense{
			USD: usd, Model: model, Tokens: store.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheCreation: 4},
		}); err != nil {
			t.Fatal(err)
		}
		f.End(c, tasks.Ending{Kind: tasks.Answered})
	}
	spend("opus\x1b[2J", 1.25)
	spend("=1+1", 0.5)

	code, out, errs := f.run("costs", "--by", "person, model", "--days", "7")
	want := strings.Join([]string{
		"PERSON     MODEL  COST   RUNS  TOKENS IN  OUT",
		"slack/ann  opus   $1.25  1     8          2",
		"slack/ann  =1+1   $0.50  1     8          2",
		"all               $1.75  2     16         4", "",
	}, "\n")
	if code != 0 || errs != "" || out != want {
		t.Errorf("exit %d: %s\ngot\n%swant\n%s", code, errs, out, want)
	}
	if _, out, _ := f.run("costs", "--by", "model", "--csv"); !strings.Contains(out, "\n'=1+1,0.5,1,") {
		t.Errorf("got %s", out)
	}
	var c api.Costs
	if _, out, _ := f.run("costs", "--json", "--person", "ann",
		"--model", "=1+1"); json.Unmarshal([]byte(out), &c) != nil || c.Total.USD != 0.5 {
		t.Errorf("%+v: %s", c, out)
	}
	for _, args := range [][]string{{"--json", "--csv"}, {"all"}} {
		if code, _, _ := f.run(append([]string{"costs"}, args...)...); code != 2 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
	if code, _, errs := f.run("costs", "--csv", "--by", "who"); code != 2 ||
		!strings.Contains(errs, "repository, model and credential") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestCostsThatAreNotToldApart(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	now := time.Now().UTC()
	day := now.Format(time.DateOnly)
	if err := f.redis.HSet(t.Context(), fmt.Sprintf("errand:costs:%d", now.Unix()/86400), "other", "2000000 3 1 2 0 0").Err(); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := f.run("costs", "--by", "day,person,channel", "--from", day); !strings.Contains(out,
		day+"  (other)  (other)  $2.00  3     1          2\n") {
		t.Errorf("got %s", out)
	}
	if _, out, errs := f.run("costs", "--repo", "acme/api"); !strings.Contains(out, "all  $0.00") ||
		!strings.Contains(errs, "$2.00 of 3 runs is missing") {
		t.Errorf("%s: %s", errs, out)
	}
}
