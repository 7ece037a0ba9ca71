package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/errand-fleet/errand/config"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// cluster is what deploy/kubernetes describes, by name. e2e/proof holds it to the Helm chart, and the chart to the
// rest.
type cluster struct {
	deployments map[string]*appsv1.Deployment
	services    map[string]*corev1.Service
	settings    map[string]*corev1.ConfigMap
	budgets     map[string]*policyv1.PodDisruptionBudget
	policies    map[string]*networkingv1.NetworkPolicy
}

// loadCluster reads every document as the API server does that was asked to be strict: no unknown and no repeated
// field.
func loadCluster(t *testing.T) cluster {
	t.Helper()
	c := cluster{
		map[string]*appsv1.Deployment{},
		map[string]*corev1.Service{},
		map[string]*corev1.ConfigMap{},
		map[string]*policyv1.PodDisruptionBudget{},
		map[string]*networkingv1.NetworkPolicy{},
	}
	files, err := filepath.Glob("../deploy/kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests found: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			switch kind.APIVersion + " " + kind.Kind {
			case "apps/v1 Deployment":
				decode(t, file, doc, c.deployments)
			case "v1 Service":
				decode(t, file, doc, c.services)
			case "v1 ConfigMap":
				decode(t, file, doc, c.settings)
			case "policy/v1 PodDisruptionBudget":
				decode(t, file, doc, c.budgets)
			case "networking.k8s.io/v1 NetworkPolicy":
				decode(t, file, doc, c.policies)
			default:
				t.Errorf("%s has a %s of %s, which nothing here looks at", file, kind.Kind, kind.APIVersion)
			}
		}
	}
	return c
}

// decode files one document under its name.
func decode[T any, P interface {
	*T
	metav1.Object
}](t *testing.T, file, doc string, into map[string]P) {
	t.Helper()
	var v P = new(T)
	if err := yaml.UnmarshalStrict([]byte(doc), v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if v.GetName() == "" || into[v.GetName()] != nil || v.GetNamespace() != "" {
		t.Errorf("%s: %T has no name, the name of another, or a namespace: %q in %q", file, v, v.GetName(),
			v.GetNamespace())
	}
	into[v.GetName()] = v
}

// programs are the two Deployments, by the name of the Compose service that is the same program.
func programs(t *testing.T) map[string]*appsv1.Deployment {
	t.Helper()
	all := loadCluster(t).deployments
	if got, want := slices.Sorted(maps.Keys(all)), []string{
		"errand-enqueue", "errand-worker",
	}; !slices.Equal(got, want) {
		t.Fatalf("deployments %v, want %v", got, want)
	}
	return map[string]*appsv1.Deployment{"enqueue": all["errand-enqueue"], "worker": all["errand-worker"]}
}

// The image is the same, so what Compose gives it is what Kubernetes must.
func TestPodsAreWhatComposeStarts(t *testing.T) {
	t.Parallel()
	compose := mustLoad(t, sample)
	for name, d := range programs(t) {
		pod, service := d.Spec.Template.Spec, compose.Services[name]
		c := pod.Containers[0]
		if c.Image != service.Image || len(c.Command) != 0 || !slices.Equal(c.Args, service.Command) {
			t.Errorf("%s: starts %q of %s, want %q of %s", name, c.Args, c.Image, service.Command, service.Image)
		}
		if got, want := time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second,
			time.Duration(*service.StopGracePeriod); got != want {
			t.Errorf("%s: may take %v to stop, want %v", name, got, want)
		}
		env := map[string]string{}
		for _, v := range c.Env {
			env[v.Name] = v.Value
		}
		if got, want := env["ERRAND_STATE_DIR"], *service.Environment["ERRAND_STATE_DIR"]; got != want {
			t.Errorf("%s: ERRAND_STATE_DIR is %q, want %q", name, got, want)
		}
		if got, want := writable(pod), writableService(service); !slices.Equal(got, want) {
			t.Errorf("%s: may write to %q, want %q", name, got, want)
		}
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.ReadOnly && strings.HasPrefix(env["ERRAND_CONFIG"], m.MountPath+"/")
		}) {
			t.Errorf("%s: %q is not mounted", name, env["ERRAND_CONFIG"])
		}
	}
}

func writable(pod corev1.PodSpec) []string {
	var paths []string
	for _, m := range pod.Containers[0].VolumeMounts {
		if !m.ReadOnly {
			paths = append(paths, m.MountPath)
		}
	}
	return slices.Sorted(slices.Values(paths))
}

func writableService(s types.ServiceConfig) []string {
	var paths []string
	for _, v := range s.Volumes {
		if !v.ReadOnly {
			paths = append(paths, v.Target)
		}
	}
	for _, v := range s.Tmpfs {
		path, _, _ := strings.Cut(v, ":")
		paths = append(paths, path)
	}
	return slices.Sorted(slices.Values(paths))
}

// Everything mounted or referred to must exist, except the Secrets, which are not in the repository.
func TestPodsReferToWhatIsThere(t *testing.T) {
	t.Parallel()
	c := loadCluster(t)
	for name, d := range c.deployments {
		pod := d.Spec.Template.Spec
		volumes := map[string]bool{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = true
			if v.ConfigMap != nil && c.settings[v.ConfigMap.Name] == nil {
				t.Errorf("%s: there is no ConfigMap %s", name, v.ConfigMap.Name)
			}
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: there is no volume %s", name, m.Name)
			}
		}
		for _, from := range pod.Containers[0].EnvFrom {
			if from.ConfigMapRef != nil && c.settings[from.ConfigMapRef.Name] == nil {
				t.Errorf("%s: its environment is from %+v, which is not there", name, from)
			}
		}
	}
}

// Selectors choose the pods they are meant for, and no other; ports and probes are those the programs have.
func TestPodsAreFound(t *testing.T) {
	t.Parallel()
	c := loadCluster(t)
	for name, d := range c.deployments {
		labels := d.Spec.Template.Labels
		budget := c.budgets[name]
		if budget == nil || !maps.Equal(budget.Spec.Selector.MatchLabels, labels) ||
			!maps.Equal(d.Spec.Selector.MatchLabels, labels) {
			t.Errorf("%s: a selector does not choose its pods, or there is no PodDisruptionBudget", name)
		}
		container := d.Spec.Template.Spec.Containers[0]
		port := container.Ports[0]
		for path, probe := range map[string]*corev1.Probe{
			"/readyz": container.ReadinessProbe, "/livez": container.LivenessProbe,
		} {
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path ||
				probe.HTTPGet.Port.StrVal != port.Name {
				t.Errorf("%s: its probe %s is %+v", name, path, probe)
			}
		}
		variable := map[string]string{"errand-enqueue": "ERRAND_HTTP_ADDR", "errand-worker": "ERRAND_WORKER_ADDR"}[name]
		if !slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool {
			return v.Name == variable && v.Value == fmt.Sprint(":", port.ContainerPort)
		}) {
			t.Errorf("%s: %s is not the port of its probes", name, variable)
		}
	}
	door := c.deployments["errand-enqueue"].Spec.Template
	if s := c.services["errand"]; s == nil || !maps.Equal(s.Spec.Selector, door.Labels) ||
		s.Spec.Ports[0].TargetPort.StrVal != door.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the Service does not lead to the front door: %+v", s)
	}
}

// A stop takes as long as the worker may need for it, wherever it runs.
func TestKubernetesAllowsAnOrderlyStop(t *testing.T) {
	t.Parallel()
	worker := programs(t)["worker"].Spec.Template.Spec
	if got := time.Duration(*worker.TerminationGracePeriodSeconds) * time.Second; got < config.StopGrace {
		t.Errorf("a worker may take %v to stop, and needs %v", got, config.StopGrace)
	}
}

// Settings are known variables, and none is a secret.
func TestKubernetesSettings(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	c := loadCluster(t)
	names := slices.Collect(maps.Keys(c.settings["errand"].Data))
	for _, d := range c.deployments {
		for _, v := range d.Spec.Template.Spec.Containers[0].Env {
			names = append(names, v.Name)
		}
	}
	for _, name := range names {
		switch {
		case name == "POD_IP", name == "GOMEMLIMIT": // the manifest's own, and Go's
		case !strings.Contains(string(example), "\n# "+name+"="):
			t.Errorf("%s is not in .env.example", name)
		case strings.HasSuffix(name, "_TOKEN"), strings.HasSuffix(name, "_SECRET"), strings.HasSuffix(name, "_KEY"),
			name == "REDIS_URL":
			t.Errorf("%s is a secret, and in a manifest", name)
		}
	}
}

// The chart has the version of the release that it installs.
func TestChartHasTheVersionOfTheRelease(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/helm/errand/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	release := regexp.MustCompile(`(?m)^## \[([0-9][^]]*)\]`).FindSubmatch(changelog)
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil || release == nil {
		t.Fatalf("no version: %v, %q", err, release)
	}
	if want := string(release[1]); chart.Version != want || chart.AppVersion != want {
		t.Errorf("the chart is %+v, and the newest release of CHANGELOG.md %s", chart, want)
	}
}
