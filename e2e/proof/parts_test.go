package proof

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selects reports whether a selector chooses a pod.
func selects(t *testing.T, s *metav1.LabelSelector, pod corev1.PodTemplateSpec) bool {
	t.Helper()
	if s == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(pod.Labels))
}

// Every pod has a policy for both directions. Redis is reached by front doors and workers only, and reaches nothing;
// workers are reached by front doors only.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	for name, values := range valuesFiles(t) {
		c := load(t, values)
		for key, pod := range c.pods() {
			component := pod.Labels["app.kubernetes.io/component"]
			p := get[*networkingv1.NetworkPolicy](t, c, "NetworkPolicy errand-"+component)
			if !selects(t, &p.Spec.PodSelector, pod) || len(p.Spec.PolicyTypes) != 2 {
				t.Errorf("%s: %s is not under a policy for both directions", name, key)
			}
			var from []string // the components among the peers
			for key, other := range c.pods() {
				for _, peer := range p.Spec.Ingress[0].From {
					if selects(t, peer.PodSelector, other) {
						from = append(from, strings.TrimPrefix(key, "Deployment errand-"))
					}
				}
			}
			slices.Sort(from)
			if component == "redis" && (!slices.Equal(from, []string{"enqueue", "worker"}) ||
				len(p.Spec.Egress) != 0) ||
				component == "worker" && !slices.Equal(from, []string{"enqueue"}) {
				t.Errorf("%s: %s is reached by %q, and reaches %+v", name, key, from, p.Spec.Egress)
			}
			if len(p.Spec.Ingress) != 1 || len(p.Spec.Ingress[0].Ports) != 1 ||
				p.Spec.Ingress[0].Ports[0].Port.StrVal != pod.Spec.Containers[0].Ports[0].Name {
				t.Errorf("%s: %s: the policy opens another port than the container has: %+v", name, key, p.Spec.Ingress)
			}
		}
	}
}

// No rule for public addresses includes a private one, and every rule names its ports.
func TestEgress(t *testing.T) {
	t.Parallel()
	for name, values := range valuesFiles(t) {
		for key, v := range load(t, values) {
			p, ok := v.(*networkingv1.NetworkPolicy)
			if !ok {
				continue
			}
			for _, rule := range p.Spec.Egress {
				if len(rule.To) == 0 || len(rule.Ports) == 0 {
					t.Errorf("%s: %s: a rule without destination or port: %+v", name, key, rule)
				}
				for _, port := range rule.Ports {
					if redis := port.Port.IntVal == 6379 || port.Port.IntVal == 26379; redis || port.Port.IntVal == 53 {
						continue
					}
					for _, peer := range rule.To {
						if peer.IPBlock != nil && strings.HasSuffix(peer.IPBlock.CIDR, "/0") &&
							len(peer.IPBlock.Except) == 0 {
							t.Errorf("%s: %s: all addresses at port %s", name, key, port.Port)
						}
					}
				}
			}
		}
	}
}

// The bundled Redis is what both connect to, with a password that is in no argument.
func TestBundledRedis(t *testing.T) {
	t.Parallel()
	c := load(t, valuesFiles(t)["bundled-redis.yaml"])
	redis := get[*appsv1.StatefulSet](t, c, "StatefulSet errand-redis")
	service := get[*corev1.Service](t, c, "Service errand-redis")
	if !maps.Equal(service.Spec.Selector, redis.Spec.Template.Labels) || redis.Spec.ServiceName != service.Name {
		t.Errorf("the Service does not lead to Redis: %+v", service.Spec)
	}
	got := configOf(t, redis.Spec.Template.Spec.Containers[0].Command)
	for setting, want := range map[string]string{
		"requirepass": "s3cret", "appendonly": "yes", "maxmemory-policy": "noeviction",
		"maxmemory": fmt.Sprint(700 << 20),
	} {
		if got(setting) != setting+"\n"+want {
			t.Errorf("of Redis %q, want %s", got(setting), want)
		}
	}
	if claims := redis.Spec.VolumeClaimTemplates; len(claims) != 1 || *claims[0].Spec.StorageClassName != "fast" {
		t.Errorf("claims %+v", claims)
	}
	for key, pod := range c.pods() {
		if component := pod.Labels["app.kubernetes.io/component"]; component == "redis" {
			continue
		}
		if got := variable(pod.Spec, "REDIS_URL"); got != "redis://:$(REDIS_PASSWORD)@errand-redis:6379/0" {
			t.Errorf("%s: REDIS_URL is %q", key, got)
		}
	}
}

// configOf runs the command of a container of Redis in a separate directory without a port, and returns a function that
// reads a setting of that Redis.
func configOf(t *testing.T, command []string) func(setting string) string {
	t.Helper()
	dir := t.TempDir()
	command = slices.Clone(command)
	last := &command[len(command)-1]
	if !strings.Contains(*last, "\ndir /data\n") {
		t.Fatalf("redis does not keep its data in /data: %s", *last)
	}
	*last = strings.Replace(*last, "\ndir /data\n", "\ndir "+dir+"\nport 0\nunixsocket "+dir+"/socket\n", 1)
	env := append(os.Environ(), "REDISCLI_AUTH=s3cret")
	server := exec.CommandContext(t.Context(), command[0], command[1:]...)
	server.Env = env
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "eady to accept connections") {
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return func(setting string) string {
		ask := exec.CommandContext(t.Context(), "redis-cli", "-s", dir+"/socket", "config", "get", setting)
		ask.Env = env
		answer, err := ask.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(answer))
	}
}

// What is off by default is there when it is on, and leads to what there is.
func TestOptions(t *testing.T) {
	t.Parallel()
	c := load(t, valuesFiles(t)["everything.yaml"])
	rule := get[*networkingv1.Ingress](t, c, "Ingress errand").Spec.Rules[0]
	backend := rule.HTTP.Paths[0].Backend.Service
	if service := get[*corev1.Service](t, c, "Service "+backend.Name); rule.Host != "errand.corp.example" ||
		service.Spec.Ports[0].Name != backend.Port.Name {
		t.Errorf("%+v", rule)
	}
	door := get[*appsv1.Deployment](t, c, "Deployment errand-enqueue").Spec.Template
	if want := "registry.corp.example/errand@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"; door.Spec.Containers[0].Image != want {
		t.Errorf("image %s, want %s", door.Spec.Containers[0].Image, want)
	}
	services, pods := get[*monitoringv1.ServiceMonitor](t, c, "ServiceMonitor errand-enqueue").Spec,
		get[*monitoringv1.PodMonitor](t, c, "PodMonitor errand-worker").Spec
	if !selects(t, &services.Selector,
		corev1.PodTemplateSpec{ObjectMeta: get[*corev1.Service](t, c, "Service errand").ObjectMeta}) ||
		services.Endpoints[0].Port != "http" {
		t.Errorf("%+v", services)
	}
	worker := get[*appsv1.Deployment](t, c, "Deployment errand-worker").Spec.Template
	if !selects(t, &pods.Selector, worker) ||
		*pods.PodMetricsEndpoints[0].Port != worker.Spec.Containers[0].Ports[0].Name {
		t.Errorf("%+v", pods)
	}
	if key := pods.PodMetricsEndpoints[0].Authorization.Credentials; key.Name != "fleet" ||
		key.Key != "ERRAND_METRICS_TOKEN" {
		t.Errorf("%+v", key)
	}
}
