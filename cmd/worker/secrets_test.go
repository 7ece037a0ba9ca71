package main

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/testlog"
)

// An agent that collects everything that it can read, prints it, and commits it finds no secret: neither the fleet's
// nor that of its repository's set-up nor that of a registry.
func TestSecretsOfACollectingAgent(t *testing.T) {
	t.Parallel()
	begun := time.Now().Unix()
	w := newWorld(t)
	setup := rand.Text()
	if w.env["ERRAND_SANDBOX"] == "none" {
		t.Fatal("bubblewrap does not work here, and outside a sandbox root can read everything")
	}
	w.env["SETUP_SECRET"], w.env["REGISTRY_TOKEN"] = setup, "registry-"+rand.Text()
	yaml := "repositories:\n  " + repo + `:
    trusted: true
    setup:
      - test "$NPM_TOKEN" = ` + setup[:9] + `''` + setup[9:] + `
      - echo installed >~/installed
    secrets: {NPM_TOKEN: env:SETUP_SECRET}
registries:
  - {host: npm.corp.example, bearer: '{{env "REGISTRY_TOKEN"}}'}
channels:
  ` + channel + ":\n    repository: " + repo + "\n"
	w.write(w.env["ERRAND_CONFIG"], yaml)
	collect := `{ cat ~/installed; env; set; cat /proc/*/environ /proc/*/cmdline; ls -l /proc/*/fd; git config --list; cat .git/config ~/.netrc ~/.npmrc ~/.gitconfig
		find / -xdev -type f -newermt @%d -size -200k -not -path '/proc/*' -not -path '/sys/*' -not -path '/usr/*' -print0 | head -z -n 3000 | xargs -0 cat | head -c 6M
		curl -s --max-time 5 -k https://npm.corp.example/-/whoami; curl -s --max-time 5 "$ANTHROPIC_BASE_URL/v1/models"; } >loot 2>/dev/null
		grep -c . loot; grep -q installed loot && echo collec''ted; git add -f loot; git commit -qm 'Collect'; strings loot | tail -c 20000`
	collect = fmt.Sprintf(collect, begun) // older files are not of this test, and there are many
	w.model.Answer("collect", bash(collect), modelfake.Turn{Text: "Collected."})
	w.frontDoor()
	log := &testlog.Log{}
	w.processTo(log)
	if final := w.answers(w.mention("collect", ""), 1)[0]; !strings.Contains(final, "/pull/1") {
		t.Errorf("the loot is not published: %s", final)
	}
	requests := w.model.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "collected") {
		t.Errorf("the agent has not collected anything: %.3000s", last)
	}
	w.search("the worker's log", []byte(log.String()))
	w.secretsStayInside()
}

// A secret that the operator exposes is a variable of the agent's commands. The agent tells it to the model, and it is
// in nothing that errand keeps or posts.
func TestExposedSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if w.env["ERRAND_SANDBOX"] == "none" {
		t.Fatal("bubblewrap does not work here, and a secret is exposed only in a sandbox")
	}
	const secret = "db-Password/4713"
	w.env["DATABASE_SECRET"] = secret
	yaml := "repositories:\n  " + repo +
		":\n    trusted: true\n    secrets: {DATABASE_PASSWORD: {from: env:DATABASE_SECRET, expose: agent}}\n" +
		"channels:\n  " + channel + ":\n    repository: " + repo + "\n"
	w.write(w.env["ERRAND_CONFIG"], yaml)
	w.model.Answer("connect", modelfake.Turn{Tools: []modelfake.ToolCall{
		{
			Name:  "Bash",
			Input: map[string]string{"command": `echo "I am <$DATABASE_PASSWORD>"; echo "$DATABASE_PASSWORD" | base64`},
		},
	}}, modelfake.Turn{Text: "Connected with " + secret + "."})
	w.frontDoor()
	log := &testlog.Log{}
	w.processTo(log)
	if final := w.answers(w.mention("connect", ""), 1)[0]; !strings.Contains(final, "Connected with [redacted]") {
		t.Errorf("the answer is %s", final)
	}
	requests := w.model.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "I am <"+secret+">") {
		t.Errorf("the agent has not seen the secret: %.3000s", last)
	}
	w.search("the worker's log", []byte(log.String()))
	w.nothingKept()
}

// secrets returns the secrets of the fleet by their names in its environment.
func (w *world) secrets() map[string]string {
	all := map[string]string{"the password of Redis": fleetPassword}
	for name, value := range w.env {
		if filepath.IsAbs(value) {
			continue // the file has the secret
		}
		if strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_SECRET") || strings.HasSuffix(name, "_KEY") {
			all[name] = value
		}
	}
	for i, secret := range w.issued {
		all[fmt.Sprint("issued ", i)] = secret
	}
	return all
}

// search fails the test for each secret that is in data, as it is or in a usual encoding.
func (w *world) search(where string, data []byte) {
	w.Helper()
	secrets := w.secrets()
	if w.sought == nil || w.sought.secrets != len(secrets) { // more are issued, and none is taken back
		w.sought = seek(secrets)
	}
	for what := range w.sought.find(data) {
		w.Errorf("%s is in %s", what, where)
	}
}

// sought are all forms of secrets, for one look at each byte of what is searched.
type sought struct {
	secrets int
	begins  [1 << 16]bool // by the first two bytes of a form, or of something compressed
	forms   map[[8]byte][]form
}

// form is a text that contains a secret, and what that is called.
type form struct{ text, name string }

func seek(secrets map[string]string) *sought {
	s := &sought{secrets: len(secrets), forms: map[[8]byte][]form{}}
	begin := func(text string) { s.begins[uint16(text[0])<<8|uint16(text[1])] = true }
	begin(gzipMagic)
	begin(zstdMagic)
	for name, secret := range secrets {
		for what, text := range forms(secret) {
			begin(text)
			key := [8]byte([]byte(text))
			s.forms[key] = append(s.forms[key], form{text, name + ": " + what})
		}
	}
	return s
}

const gzipMagic, zstdMagic = "\x1f\x8b", "\x28\xb5\x2f\xfd"

// find returns the names of the forms that are in data, which may be compressed.
func (s *sought) find(data []byte) map[string]bool {
	names := map[string]bool{}
	if len(data) > 0 && data[0] == 0x78 {
		if r, err := zlib.NewReader(bytes.NewReader(data)); err == nil {
			s.unpack(r, names)
		}
	}
	for i := 0; i+len(gzipMagic) < len(data); i++ { // several streams may follow one another
		if !s.begins[uint16(data[i])<<8|uint16(data[i+1])] {
			continue
		}
		rest := data[i:]
		if len(rest) >= 8 {
			for _, f := range s.forms[[8]byte(rest)] {
				if bytes.HasPrefix(rest, []byte(f.text)) {
					names[f.name] = true
				}
			}
		}
		if bytes.HasPrefix(rest, []byte(gzipMagic)) {
			if r, err := gzip.NewReader(bytes.NewReader(rest)); err == nil {
				s.unpack(r, names)
			}
		}
		if bytes.HasPrefix(rest, []byte(zstdMagic)) {
			if r, err := zstd.NewReader(bytes.NewReader(rest)); err == nil {
				s.unpack(r, names)
				r.Close()
			}
		}
	}
	return names
}

// unpack finds what is in a stream.
func (s *sought) unpack(r io.Reader, names map[string]bool) {
	plain, _ := io.ReadAll(io.LimitReader(r, 64<<20))
	for name := range s.find(plain) {
		names[name+" compressed,"] = true
	}
}

// forms returns texts that contain a secret, wherever it begins in what was encoded.
func forms(secret string) map[string]string {
	all := map[string]string{
		"the secret": secret, "its hexadecimal form": hex.EncodeToString([]byte(secret)),
		"its form for an address": url.QueryEscape(secret),
	}
	for skip := range 3 {
		for name, encoding := range map[string]*base64.Encoding{
			"base64": base64.RawStdEncoding, "base64 for addresses": base64.RawURLEncoding,
		} {
			text := encoding.EncodeToString([]byte(strings.Repeat("x", skip) + secret))
			all[fmt.Sprintf("its %s, from byte %d,", name, skip)] = text[(skip*8+5)/6 : len(text)-1]
		}
	}
	return all
}

// The search finds a secret in every form.
func TestSearchFindsSecrets(t *testing.T) {
	t.Parallel()
	const secret = "ghp_Some?Secret/12"
	s := seek(map[string]string{"a token": secret, "another": "sk-ant-another"})
	for what, text := range forms(secret) {
		if !s.find([]byte("before " + text + " after"))["a token: "+what] {
			t.Errorf("%s is not found", what)
		}
	}
	for skip := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("#", skip) + secret + "more"))
		if len(s.find([]byte(text))) == 0 {
			t.Errorf("base64 from byte %d is not found", skip)
		}
	}
	var packed, object bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, "first")
	_ = z.Close()
	z.Reset(&packed)
	_, _ = io.WriteString(z, "then "+secret)
	_ = z.Close()
	loose := zlib.NewWriter(&object)
	_, _ = io.WriteString(loose, "blob "+secret)
	_ = loose.Close()
	encoder, err := zstd.NewWriter(nil)
	if err != nil || len(s.find(encoder.EncodeAll([]byte("text with "+secret), nil))) == 0 {
		t.Error("zstd is not searched", err)
	}
	if len(s.find(append([]byte("head"), packed.Bytes()...))) == 0 || len(s.find(object.Bytes())) == 0 ||
		len(s.find([]byte("ghp_Some"))) > 0 {
		t.Error("wrong about compressed or other texts")
	}
}

// secretsStayInside looks for the fleet's secrets in every place where they must not be: what the model got, logs,
// clones, environments and temporary files, Redis, posts, pull requests and their commits.
func (w *world) secretsStayInside() {
	w.Helper()
	for _, r := range w.model.Requests() {
		w.search("a request to the model", r.Body)
	}
	w.nothingKept()
}

// nothingKept looks for the fleet's secrets in all places but what the model got.
func (w *world) nothingKept() {
	w.Helper()
	for _, dir := range []string{w.env["ERRAND_STATE_DIR"], w.env["TMPDIR"]} {
		w.searchDir(dir)
	}
	w.searchRedis()
	for _, c := range w.slack.Calls("") {
		w.search("a call of Slack", []byte(c.Form.Encode()))
	}
	for _, c := range w.github.Calls("") {
		w.search("a call of GitHub: "+c.Path, c.Body)
	}
	log, err := w.github.Repo(repo).Git(w.Context(), "log", "--all", "--patch", "--format=fuller", "--text")
	if err != nil {
		w.Error(err)
	}
	w.search("the repository", []byte(log))
}

// searchDir searches all files of a directory, and the objects of its git repositories.
func (w *world) searchDir(dir string) {
	w.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if _, none := os.Stat(filepath.Join(filepath.Dir(path), "HEAD")); err == nil && none == nil && d.IsDir() &&
			d.Name() == "objects" {
			git := exec.CommandContext(w.Context(), "git", "cat-file", "--batch-all-objects", "--batch")
			git.Dir = filepath.Dir(path)
			out, err := git.Output()
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				err = fmt.Errorf("read %s: %s", path, exit.Stderr)
			}
			w.search("git's "+path, out)
			return err
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		w.search(path, b)
		return err
	})
	if err != nil {
		w.Error(err)
	}
}

// searchRedis searches all keys, and the values of all types.
func (w *world) searchRedis() {
	w.Helper()
	ctx, admin := context.Background(), w.admin()
	keys, err := admin.Keys(ctx, "*").Result()
	if err != nil {
		w.Fatal(err)
	}
	for _, key := range keys {
		kind := admin.Type(ctx, key).Val()
		args := map[string][]any{
			"string": {"GET", key}, "hash": {"HGETALL", key}, "list": {"LRANGE", key, 0, -1}, "set": {"SMEMBERS", key},
			"zset": {"ZRANGE", key, 0, -1}, "stream": {"XRANGE", key, "-", "+"},
		}[kind]
		if args == nil {
			continue // it has expired
		}
		value, err := admin.Do(ctx, args...).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			w.Errorf("read %s: %v", key, err)
		}
		w.search("Redis: "+key, []byte(key))
		w.searchValue("Redis: "+key, value)
	}
}

func (w *world) searchValue(where string, value any) {
	w.Helper()
	switch v := value.(type) {
	case string:
		w.search(where, []byte(v))
	case []any:
		for _, one := range v {
			w.searchValue(where, one)
		}
	case map[any]any:
		for field, one := range v {
			w.searchValue(where, field)
			w.searchValue(where, one)
		}
	}
}
