package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/testlog"
)

// Every pushed commit has a signature that git verifies, with the asker as co-author, and the pull request is as
// errand.yaml says. The agent finds the key neither in the file nor elsewhere. Slack's button marks the draft as ready.
func TestCommitsAreSigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "signing")
	if out,
		err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bot", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if w.env["ERRAND_SANDBOX"] == "none" {
		t.Fatal("bubblewrap does not work here, and outside a sandbox root can read everything")
	}
	w.env["ERRAND_SIGNING_KEY"], w.env["ERRAND_COMMIT_AUTHOR"] =
		file, "errand-bot <42+errand-bot@users.noreply.github.com>"
	lines := strings.Split(string(key), "\n")
	w.issued = append(w.issued, lines[3], lines[4]) // the first ones are the same in all keys, and have the public one
	w.github.SetPermission(repo, "ann-acme", "write")
	yaml := "repositories:\n  " + repo +
		":\n    trusted: true\n    pull_requests: {branch_prefix: bot/, title: '[errand] ', labels: [bot]}\n" +
		"channels:\n  " + channel + ":\n    repository: " + repo + "\npeople:\n  Ann Lee: {slack: " + person +
		", github: ann-acme}\n"
	w.write(w.env["ERRAND_CONFIG"], yaml)
	command := "cat " + file + "; ls " + dir +
		"; env | grep -c SIGNING; cat /proc/*/environ | tr '\\0' '\\n' | grep -c BEGIN.OPENSSH; " +
		"echo '// cents' >>total.go; git commit -qam 'Count in cents' && git log -1 --format='I am %an %ae'; echo '// more' >>total.go; echo don''e"
	w.model.Answer("mend the total", bash(command), modelfake.Turn{Text: "It counts cents."})
	w.frontDoor()
	log := &testlog.Log{}
	w.processTo(log)
	if final := w.answers(w.mention("mend the total", ""), 1)[0]; !strings.Contains(final, "/pull/1") {
		t.Errorf("final message: %s", final)
	}
	requests := w.model.Requests()
	last := string(requests[len(requests)-1].Body)
	if !strings.Contains(last, "done") ||
		!strings.Contains(last, "I am errand-bot 42+errand-bot@users.noreply.github.com") ||
		!strings.Contains(last, file+": No such file") {
		t.Errorf("the agent has seen %.3000s", last)
	}
	w.search("the worker's log", []byte(log.String()))
	w.secretsStayInside()

	pulls := w.github.Pulls(repo)
	if len(pulls) != 1 || !pulls[0].Draft || pulls[0].Title != "[errand] Count in cents" ||
		!strings.HasPrefix(pulls[0].Head, "bot/slack-") ||
		strings.Join(pulls[0].Labels, " ") != "bot" || strings.Join(pulls[0].Reviewers, " ") != "ann-acme" {
		t.Fatalf("pull requests: %+v", pulls)
	}
	allowed := filepath.Join(dir, "allowed")
	if err := os.WriteFile(allowed, append([]byte("* "), public...), 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.github.Repo(repo)
	commits, err := r.Git(t.Context(), "rev-list", "main.."+pulls[0].Head)
	if err != nil || len(strings.Fields(commits)) != 2 {
		t.Fatalf("commits %q, %v", commits, err)
	}
	for commit := range strings.FieldsSeq(commits) {
		if out, err := r.Git(t.Context(), "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed,
			"verify-commit", commit); err != nil {
			t.Errorf("%s does not verify: %v\n%s", commit, err, out)
		}
		text, err := r.Git(t.Context(), "cat-file", "commit", commit)
		if err != nil || !strings.Contains(text, "\nauthor errand-bot <42+") ||
			!strings.Contains(text, "\ncommitter errand-bot <42+") ||
			!strings.Contains(text, "\nCo-authored-by: Ann Lee <") ||
			!strings.Contains(text, "+ann-acme@users.noreply.") {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
