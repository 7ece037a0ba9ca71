package agent

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/session"
)

// knock makes a script that prints whether an address accepts connections.
func knock(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/%s/%s' 2>/dev/null && echo open || echo closed\n", host, port)
}

// Every run behind a gateway has a separate network, in which it reaches its gateway but neither the machine's loopback
// nor what the machine reaches. An untrusted run has nothing else there, and others have the egress proxy. A run
// without a gateway shares the machine's network.
func TestNetworks(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	script := "grep -c : /proc/net/dev\n" + knock(l.Addr().String()) + knock(strings.TrimPrefix(egressURL, "http://")) +
		`addr=${ANTHROPIC_BASE_URL#http://}; bash -c "exec 3<>/dev/tcp/${addr%:*}/${addr#*:}" 2>/dev/null && echo gateway; echo $HTTPS_PROXY $TOKEN`
	for _, c := range []struct {
		name       string
		profile    Profile
		direct     bool
		own, proxy bool
	}{
		{"untrusted", Untrusted, false, true, false},
		{"read", Read, false, true, true},
		{"write", Write, false, true, true},
		{"direct", Untrusted, true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inSandbox(t, "shell", func(t *testing.T, b *bench) {
				place, e := b.place(t.Context(), Spec{Dir: b.dir, Profile: Untrusted, script: true}, "/bin/bash",
					&session.Dirs{Root: b.dir})
				if e != nil {
					t.Fatal(e)
				}
				possible := place.OwnNetwork
				h := &host{}
				spec := Spec{Profile: c.profile, Prompt: Message{Text: script}}
				spec.Secrets = map[string]string{"TOKEN": "exposed-1"}
				res := b.run(t, t.Context(), spec, h)
				words := strings.Fields(res.Text)
				if len(words) < 3 {
					t.Fatalf("%v %q", res.Error, res.Text)
				}
				if own := words[0] == "1" && words[1] == "closed"; own != (c.own && possible) {
					t.Errorf("own network: %t, printed %q", own, res.Text)
				}
				if proxy := words[2] == "open" && slices.Contains(words, egressURL); proxy != (c.proxy && possible) {
					t.Errorf("egress proxy: %t, printed %q", proxy, res.Text)
				}
				noticed := slices.ContainsFunc(h.events, func(e Event) bool {
					return e.Kind == Notice && strings.Contains(e.Text, "no secrets")
				})
				if own := c.own && possible; slices.Contains(words, "exposed-1") != own || noticed == own {
					t.Errorf("a notice about the secret: %t, printed %q", noticed, res.Text)
				}
				if !c.direct && !slices.Contains(words, "gateway") {
					t.Errorf("the gateway is out of reach: %q", res.Text)
				}
				b.gone(t)
			}, func(cfg *Config) {
				cfg.Credential, cfg.Direct, cfg.BaseURL = Credential{APIKey: "sk-ant-test-1"}, c.direct,
					"http://127.0.0.1:1"
			})
		})
	}
}
