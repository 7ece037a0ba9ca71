package proof

import (
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

const chartDir = "deploy/helm/errand"

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(top, chartDir))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders the chart as `helm template errand -f FILE` does, by the name of the template.
func render(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	c := loadChart(t)
	options := chartutil.ReleaseOptions{Name: "errand", Namespace: "fleet", Revision: 1, IsInstall: true}
	in, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	all, err := engine.Engine{Strict: true}.Render(c, in)
	files := map[string]string{}
	for name, text := range all {
		if text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "---")); text != "" &&
			filepath.Base(name)[0] != '_' {
			files[filepath.Base(name)] = trailing.ReplaceAllString(text, "") + "\n"
		}
	}
	return files, err
}

// trailing is the space that a template leaves where it adds nothing.
var trailing = regexp.MustCompile(`(?m)[ \t]+$`)

// valuesFiles are the values of testdata and of docs/deploy.md, and none.
func valuesFiles(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{"defaults": {}}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no values found: %v", err)
	}
	for _, file := range files {
		if all[filepath.Base(file)], err = chartutil.ReadValuesFile(file); err != nil {
			t.Fatal(err)
		}
	}
	_, text, found := strings.Cut(read(t, "docs/deploy.md"),
		"\nA `values.yaml` for two pools and an Ingress:\n\n```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if all["docs"], err = chartutil.ReadValues([]byte(text)); err != nil || !found {
		t.Fatalf("docs/deploy.md has no values: %v", err)
	}
	return all
}

// scaledObject has KEDA's names of what the chart uses.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef  struct{ Name string }
		MinReplicaCount *int32
		MaxReplicaCount *int32
		PollingInterval *int32
		CooldownPeriod  *int32
		Advanced        struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
			}
		}
		Triggers []struct {
			Type, MetricType string
			Metadata         map[string]string
		}
	}
}

// scaledJob likewise.
type scaledJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PollingInterval, MinReplicaCount, MaxReplicaCount  *int32
		SuccessfulJobsHistoryLimit, FailedJobsHistoryLimit *int32
		ScalingStrategy, Rollout                           struct{ Strategy string }
		JobTargetRef                                       batchv1.JobSpec
		Triggers                                           []struct {
			Type, MetricType string
			Metadata         map[string]string
		}
	}
}

// kinds are the API types that the chart may use.
var kinds = map[string]func() metav1.Object{
	"apps/v1 Deployment":                     func() metav1.Object { return &appsv1.Deployment{} },
	"apps/v1 StatefulSet":                    func() metav1.Object { return &appsv1.StatefulSet{} },
	"autoscaling/v2 HorizontalPodAutoscaler": func() metav1.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"keda.sh/v1alpha1 ScaledJob":             func() metav1.Object { return &scaledJob{} },
	"keda.sh/v1alpha1 ScaledObject":          func() metav1.Object { return &scaledObject{} },
	"monitoring.coreos.com/v1 PodMonitor":    func() metav1.Object { return &monitoringv1.PodMonitor{} },
	"monitoring.coreos.com/v1 ServiceMonitor": func() metav1.Object {
		return &monitoringv1.ServiceMonitor{}
	},
	"networking.k8s.io/v1 Ingress":       func() metav1.Object { return &networkingv1.Ingress{} },
	"networking.k8s.io/v1 NetworkPolicy": func() metav1.Object { return &networkingv1.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":      func() metav1.Object { return &policyv1.PodDisruptionBudget{} },
	"v1 ConfigMap":                       func() metav1.Object { return &corev1.ConfigMap{} },
	"v1 Service":                         func() metav1.Object { return &corev1.Service{} },
}

// cluster is what a rendering describes, by kind and name.
type cluster map[string]metav1.Object

// load decodes a rendering as the API server does that was asked to be strict: no unknown and no repeated field.
func load(t *testing.T, values map[string]any) cluster {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	delete(files, "NOTES.txt")
	all := cluster{}
	for name, text := range files {
		for doc := range strings.SplitSeq(text, "\n---\n") {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			fresh := kinds[kind.APIVersion+" "+kind.Kind]
			if fresh == nil {
				t.Fatalf("%s has a %s of %s, which nothing here looks at:\n%s", name, kind.Kind, kind.APIVersion, doc)
			}
			v := fresh()
			if err := yaml.UnmarshalStrict([]byte(doc), v); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			key := kind.Kind + " " + v.GetName()
			if v.GetName() == "" || all[key] != nil || v.GetNamespace() != "" {
				t.Errorf("%s: %s has no name, the name of another, or a namespace", name, key)
			}
			all[key] = v
		}
	}
	return all
}

// pods returns the templates of all pods, by kind and name.
func (c cluster) pods() map[string]corev1.PodTemplateSpec {
	all := map[string]corev1.PodTemplateSpec{}
	for key, v := range c {
		switch v := v.(type) {
		case *appsv1.Deployment:
			all[key] = v.Spec.Template
		case *appsv1.StatefulSet:
			all[key] = v.Spec.Template
		case *scaledJob:
			all[key] = v.Spec.JobTargetRef.Template
		}
	}
	return all
}

// get returns what must be there.
func get[T metav1.Object](t *testing.T, c cluster, key string) (v T) {
	t.Helper()
	v, ok := c[key].(T)
	if !ok {
		t.Fatalf("no %s in %q", key, slices.Sorted(maps.Keys(c)))
	}
	return v
}

// deploy/kubernetes is the chart with its default values, one file for each template.
func TestManifestsAreTheChart(t *testing.T) {
	t.Parallel()
	files, err := render(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	delete(files, "NOTES.txt")
	const origin = "# deploy/helm/errand with its default values: change those and run `make proof ARGS=-update`.\n"
	for name, text := range files {
		golden(t, "deploy/kubernetes/"+name, origin+text)
	}
	there, err := filepath.Glob(filepath.Join(top, "deploy/kubernetes/*"))
	if err != nil || len(there) != len(files) {
		t.Errorf("deploy/kubernetes has %q, want only %q: %v", there, slices.Sorted(maps.Keys(files)), err)
	}
}

// `helm lint` has no warning with any of the values.
func TestChartPassesLint(t *testing.T) {
	t.Parallel()
	for name, values := range valuesFiles(t) {
		for _, m := range lint.All(filepath.Join(top, chartDir), values, "fleet", true).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// Every rendering is valid, and its pods meet Kubernetes' own policy "restricted", except that those with a sandbox lack
// what forbids it.
func TestChartIsValidAndRestricted(t *testing.T) {
	t.Parallel()
	restricted, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range valuesFiles(t) {
		c := load(t, values)
		for key, pod := range c.pods() {
			var forbidden, want []string
			for _, result := range restricted.EvaluatePod(api.LevelVersion{
				Level: api.LevelRestricted, Version: api.LatestVersion(),
			}, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					forbidden = append(forbidden, result.ForbiddenReason)
				}
			}
			once := slices.Contains(pod.Spec.Containers[0].Args, "-once")
			if variable(pod.Spec, "ERRAND_SANDBOX") == "auto" && !once {
				want = needed(pod.Spec)
			}
			if slices.Sort(forbidden); !slices.Equal(forbidden, want) {
				t.Errorf("%s: %s: forbidden are %q, want %q", name, key, forbidden, want)
			}
			if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
				t.Errorf("%s: %s has a token of the cluster", name, key)
			}
			// Else a Service named errand would put variables ERRAND_… into the pod.
			if pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks {
				t.Errorf("%s: variables of other services are in the environment of %s", name, key)
			}
			if root := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
				t.Errorf("%s: %s can write to its root", name, key)
			}
		}
	}
}

// needed returns what the policy may say about a pod with a sandbox. It is empty, too, if the pod does not permit one.
func needed(pod corev1.PodSpec) (reasons []string) {
	proc := pod.Containers[0].SecurityContext.ProcMount
	if pod.HostUsers == nil || *pod.HostUsers || proc == nil || *proc != corev1.UnmaskedProcMount {
		return nil
	}
	return []string{"forbidden AppArmor profile", "procMount", "seccompProfile"}
}

// Each pod refers to the Secrets that are its own, and only to ConfigMaps of the chart.
func TestChartGivesEachPodItsOwnSecrets(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]map[string][]string{
		"defaults":        {"enqueue": {"errand", "errand-front-door"}, "worker": {"errand", "errand-worker"}},
		"everything.yaml": {"enqueue": {"door", "fleet", "redis-ca"}, "worker": {"fleet", "model", "redis-ca"}},
		"bundled-redis.yaml": {
			"enqueue": {"errand", "errand-front-door", "errand-redis"},
			"worker":  {"errand", "errand-redis", "errand-worker"}, "redis": {"errand-redis"},
		},
	} {
		c := load(t, valuesFiles(t)[values])
		for key, pod := range c.pods() {
			secrets, maps := referred(pod.Spec)
			if want := want[pod.Labels["app.kubernetes.io/component"]]; !slices.Equal(secrets, want) {
				t.Errorf("%s: %s has the Secrets %q, want %q", values, key, secrets, want)
			}
			for _, name := range maps {
				get[*corev1.ConfigMap](t, c, "ConfigMap "+name)
			}
		}
	}
}

// referred returns the names of the Secrets and ConfigMaps that a pod refers to.
func referred(pod corev1.PodSpec) (secrets, configMaps []string) {
	for _, from := range pod.Containers[0].EnvFrom {
		if from.SecretRef != nil {
			secrets = append(secrets, from.SecretRef.Name)
		} else {
			configMaps = append(configMaps, from.ConfigMapRef.Name)
		}
	}
	for _, v := range pod.Containers[0].Env {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			secrets = append(secrets, v.ValueFrom.SecretKeyRef.Name)
		}
	}
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			secrets = append(secrets, v.Secret.SecretName)
		} else if v.ConfigMap != nil {
			configMaps = append(configMaps, v.ConfigMap.Name)
		}
	}
	slices.Sort(secrets)
	return slices.Compact(secrets), configMaps
}

// Each pool is a Deployment with its own name, selector, size and autoscaler.
func TestPools(t *testing.T) {
	t.Parallel()
	c := load(t, valuesFiles(t)["two-pools.yaml"])
	usual, gpu := get[*appsv1.Deployment](t, c, "Deployment errand-worker"), get[*appsv1.Deployment](t, c,
		"Deployment errand-worker-gpu")
	if usual.Spec.Replicas == nil || *usual.Spec.Replicas != 5 || gpu.Spec.Replicas != nil {
		t.Errorf("replicas %v and, although KEDA sets them, %v", usual.Spec.Replicas, gpu.Spec.Replicas)
	}
	if maps.Equal(usual.Spec.Selector.MatchLabels, gpu.Spec.Selector.MatchLabels) {
		t.Error("both pools select the same pods")
	}
	for pool, d := range map[string]*appsv1.Deployment{"default": usual, "gpu": gpu} {
		if got := variable(d.Spec.Template.Spec, "ERRAND_POOL"); got != pool {
			t.Errorf("pool %s: ERRAND_POOL is %q", pool, got)
		}
		get[*policyv1.PodDisruptionBudget](t, c, "PodDisruptionBudget "+d.Name)
	}
	pod := gpu.Spec.Template.Spec
	if pod.NodeSelector["accelerator"] != "nvidia" || len(pod.Tolerations) != 1 ||
		pod.Containers[0].Resources.Limits.Memory().String() != "16Gi" ||
		variable(pod, "ERRAND_CONCURRENCY") != "2" || variable(pod, "ERRAND_SANDBOX") != "auto" {
		t.Errorf("the pool's own settings are not in force: %+v", pod)
	}
	scaled := get[*scaledObject](t, c, "ScaledObject errand-worker-gpu")
	if s := scaled.Spec; s.ScaleTargetRef.Name != gpu.Name || *s.MinReplicaCount != 0 || *s.MaxReplicaCount != 4 ||
		s.Triggers[0].Metadata["query"] != `max(errand_workers_wanted{pool="gpu"})` ||
		s.Triggers[0].Metadata["threshold"] != "1" {
		t.Errorf("%+v", s)
	}
	settings := get[*corev1.ConfigMap](t, c, "ConfigMap errand").Data
	if want := map[string]string{
		"ERRAND_PUBLIC_URL": "https://errand.corp.example", "ERRAND_MODEL": "sonnet", "ERRAND_LINK_DAYS": "0",
		"GITHUB_APP_ID": "1234567",
	}; !maps.Equal(settings, want) {
		t.Errorf("settings %v, want %v", settings, want)
	}
}

// A pool with one task for each container has a Job for each task if KEDA makes them, and otherwise containers that start
// again. Both empty what a task can write to.
func TestOneTaskPerContainer(t *testing.T) {
	t.Parallel()
	c := load(t, valuesFiles(t)["one-task.yaml"])
	deployed := get[*appsv1.Deployment](t, c, "Deployment errand-worker").Spec.Template.Spec
	job := get[*scaledJob](t, c, "ScaledJob errand-worker-jobs").Spec
	pod := job.JobTargetRef.Template.Spec
	if job.Rollout.Strategy != "gradual" {
		t.Errorf("a change of the settings ends running tasks: %q", job.Rollout.Strategy)
	}
	for name, one := range map[string]corev1.PodSpec{"Deployment": deployed, "ScaledJob": pod} {
		args := one.Containers[0].Args
		writable := []string{"/dev/termination-log"} // Kubernetes mounts it for everybody to write to
		for _, m := range one.Containers[0].VolumeMounts {
			if !m.ReadOnly {
				writable = append(writable, m.MountPath)
			}
		}
		if list, _ := strings.CutPrefix(args[len(args)-1], "-empty="); !slices.Contains(args, "-once") ||
			slices.ContainsFunc(writable, func(dir string) bool { return !slices.Contains(strings.Split(list, ":"), dir) }) {
			t.Errorf("%s: %q, and a task can write to %q", name, args, writable)
		}
	}
	if pod.RestartPolicy != corev1.RestartPolicyNever || *job.JobTargetRef.BackoffLimit != 0 ||
		!slices.Contains(pod.Containers[0].Args, "-wait=2m") || job.ScalingStrategy.Strategy != "accurate" ||
		!strings.Contains(job.Triggers[0].Metadata["query"], `sum(max by (class) (errand_queue_startable{pool="jobs"}))`) {
		t.Errorf("%+v", job)
	}
}

func variable(pod corev1.PodSpec, name string) string {
	for _, v := range pod.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// One worker for each that is wanted, by the metric that is documented.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	hpa := get[*autoscalingv2.HorizontalPodAutoscaler](t, load(t, valuesFiles(t)["everything.yaml"]),
		"HorizontalPodAutoscaler errand-worker")
	external := hpa.Spec.Metrics[0].External
	if len(hpa.Spec.Metrics) != 1 || external.Metric.Name != "errand_workers_wanted" ||
		external.Metric.Selector.MatchLabels["pool"] != "default" ||
		external.Target.AverageValue.String() != "1" || *hpa.Spec.MinReplicas != 2 || hpa.Spec.MaxReplicas != 40 ||
		hpa.Spec.ScaleTargetRef.Name != "errand-worker" {
		t.Errorf("%+v", hpa.Spec)
	}
	pools := load(t, valuesFiles(t)["two-pools.yaml"])
	keda := get[*scaledObject](t, pools, "ScaledObject errand-worker-gpu")
	if cooldown := keda.Spec.CooldownPeriod; cooldown == nil || *cooldown != 600 {
		t.Errorf("an empty pool after %v", cooldown)
	}
	for kind, b := range map[string]*autoscalingv2.HorizontalPodAutoscalerBehavior{
		"HPA": hpa.Spec.Behavior, "KEDA": keda.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior,
	} {
		up, down := b.ScaleUp.StabilizationWindowSeconds, b.ScaleDown.StabilizationWindowSeconds
		if up == nil || down == nil || *up != 30 || *down != 600 {
			t.Errorf("%s: %v and %v", kind, up, down)
		}
	}
}

// The schema refuses what would not work, with the value's name.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"frontdoor: {}":                           "frontdoor",
		"settings: {SLACK_BOT_TOKEN: xoxb}":       "SLACK_BOT_TOKEN",
		"worker: {env: {REDIS_URL: x}}":           "REDIS_URL",
		"worker: {env: {ERRAND_SANDBOX: none}}":   "ERRAND_SANDBOX",
		"worker: {env: {ERRAND_WORKER_URL: x}}":   "ERRAND_WORKER_URL",
		"settings: {ERRAND_POOL: gpu}":            "ERRAND_POOL",
		"worker: {isolation: none}":               "isolation",
		"sandbox: {seccompProfile: {type: none}}": "type",
		"pools: []":                                 "pools",
		"pools: [{name: GPU}]":                      "name",
		"pools: [{replicas: 2}]":                    "name",
		"worker: {autoscaling: {kind: vpa}}":        "kind",
		"image: {digest: latest}":                   "digest",
		"redis: {bundled: yes please}":              "bundled",
		"ingress: {enabled: true, host: ''}":        "host",
		"networkPolicy: {ports: [https]}":           "ports",
		"secrets: {worker: ''}":                     "worker",
		"monitoring: {enabled: true, interval: 1m}": "interval",
	} {
		values, err := chartutil.ReadValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a refusal of %s", text, err, want)
		}
	}
}

// A run that fills the disk is ended before Kubernetes evicts the pod with all its runs.
func TestRunsFitTheDisk(t *testing.T) {
	t.Parallel()
	const slots, logs = 4, 5e9 // by default
	pod := load(t, nil).pods()["Deployment errand-worker"].Spec
	number := func(name string) float64 {
		n, err := strconv.ParseFloat(variable(pod, name), 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n
	}
	runs := slots * number("ERRAND_RUN_DISK_GB") * (1 << 30)
	for _, v := range pod.Volumes {
		if v.EmptyDir == nil {
			continue
		}
		need := runs
		if v.Name == "state" {
			need += number("ERRAND_KEEP_CLONES_GB")*1e9 + logs
		}
		if room := v.EmptyDir.SizeLimit.AsApproximateFloat64(); room <= need {
			t.Errorf("%s has room for %.0f bytes, want more than %.0f", v.Name, room, need)
		}
	}
}

// With IPv6 an address in a URL is in brackets, and 0.0.0.0 is no address of the pod.
func TestIPv6(t *testing.T) {
	t.Parallel()
	pods := load(t, map[string]any{"worker": map[string]any{"url": "http://[$(POD_IP)]:8081"}}).pods()
	worker, door := pods["Deployment errand-worker"].Spec, pods["Deployment errand-enqueue"].Spec
	got := []string{
		variable(door, "ERRAND_HTTP_ADDR"), variable(worker, "ERRAND_WORKER_ADDR"), variable(worker, "ERRAND_WORKER_URL"),
	}
	if want := []string{":8080", ":8081", "http://[$(POD_IP)]:8081"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The notes name the Secrets that have to be there.
func TestNotes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"defaults": {
			"errand: REDIS_URL", "errand-front-door:", "errand-worker:", "-n fleet exec deploy/errand-enqueue",
		}, "bundled-redis.yaml": {"errand-redis: password"},
	} {
		files, err := render(t, valuesFiles(t)[name])
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(files["NOTES.txt"], text) {
				t.Errorf("%s: no %q in\n%s", name, text, files["NOTES.txt"])
			}
		}
	}
}

// errand.yaml gets into the ConfigMap as it is.
func TestErrandYaml(t *testing.T) {
	t.Parallel()
	text := read(t, "config/errand.example.yaml")
	if got := get[*corev1.ConfigMap](t, load(t, map[string]any{"errandYaml": text}), "ConfigMap errand-files").Data["errand.yaml"]; got != text {
		t.Errorf("got\n%s", got)
	}
}

// A change of the settings replaces the pods, and nothing else about them.
func TestChangedSettingsReplacePods(t *testing.T) {
	t.Parallel()
	before, after := load(t, nil).pods(), load(t, map[string]any{"errandYaml": "repositories: {acme/api: {}}"}).pods()
	for key, pod := range before {
		other := after[key]
		if maps.Equal(pod.Annotations, other.Annotations) || !reflect.DeepEqual(pod.Spec, other.Spec) {
			t.Errorf("%s: %v, then %v", key, pod.Annotations, other.Annotations)
		}
	}
}
