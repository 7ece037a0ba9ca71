package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The command of a manipulated agent: it searches the container for readable processes of its user, for the time of
// some health checks. Its own run's processes do not count. It prints names of variables, and the number of failed
// attempts.
const (
	spying = "what can you read?"
	spied  = "I have looked around."
	spy    = `node -e '
const fs = require("fs"), seen = new Set(), end = Date.now() + 4000;
const open = "OP" + "EN: "; // so that the command itself does not have it
let shut = 0;
const look = (what, read) => { try { return read() } catch (e) { if (e.code === "EACCES" || e.code === "EPERM") shut++; return null } };
while (Date.now() < end) for (const p of fs.readdirSync("/proc").filter(p => /^[0-9]+$/.test(p))) {
  const env = look("environ", () => fs.readFileSync("/proc/" + p + "/environ", "latin1"));
  if (env === "" || env?.includes("ERRAND_RUN=")) continue;
  const name = look("comm", () => fs.readFileSync("/proc/" + p + "/comm", "utf8").trim());
  seen.add("line of " + name + ": " + look("cmdline", () => fs.readFileSync("/proc/" + p + "/cmdline", "utf8").replaceAll("\0", " ")));
  if (env) seen.add(open + "environ of " + name + ": " + env.split("\0").map(v => v.split("=")[0]).join(" "));
  if (look("mem", () => fs.openSync("/proc/" + p + "/mem"))) seen.add(open + "mem of " + name);
  if (look("fd", () => fs.readdirSync("/proc/" + p + "/fd"))) seen.add(open + "files of " + name);
}
console.log([...seen].join("\n") + "\nlooks in vain: " + (shut > 100 ? "many" : shut));
'`
)

// spyTurns are the model's answers.
func spyTurns() []modelfake.Turn {
	return []modelfake.Turn{
		{Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]string{"command": spy, "description": "look for secrets"},
		}}},
		{Text: spied},
	}
}

// secrets must not be found, nor the password of Redis.
var secrets = []string{"trial-token-for-loopback", "sk-ant-trial"}

// spyOn lets the agent search for secrets in its container during repeated health checks.
func (t *trial) spyOn(ctx context.Context, c *container) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	checked := make(chan error, 1)
	checks := 0
	go func() {
		for ctx.Err() == nil {
			if err := t.img.exec(ctx, c, t.shared, t.shared.health...); err != nil && ctx.Err() == nil {
				checked <- err
				return
			}
			checks++
		}
		checked <- nil
	}()
	said, err := t.img.run(ctx, t.client("chat", "--follow", spying))
	cancel()
	if err = errors.Join(err, <-checked); err != nil {
		return err
	}
	if !strings.Contains(said, spied) {
		return fmt.Errorf("the agent did not look around:\n%s", said)
	}
	for _, s := range []string{"looks in vain: many", "line of tini", "line of worker", "line of errand-keeper"} {
		if !t.heard(s) {
			return fmt.Errorf("the agent's command did not print %q:\n%s", s, said)
		}
	}
	for _, s := range append([]string{"OPEN: "}, secrets...) {
		if at := t.heardLine(s); at != "" {
			return fmt.Errorf("the agent's command could read secrets: %s", at)
		}
	}
	t.say("%-8s its tools read nothing of tini, worker, keeper and %d health checks", "run", checks)
	return nil
}
