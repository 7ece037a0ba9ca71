{{- /* Labels that select the pods of a component: (list $ component). */ -}}
{{- define "errand.labels" -}}
app.kubernetes.io/name: errand
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- /* A worker pool, with what it has in common with the others, as JSON: (list $ pool). Its variables are added, all else replaces. */ -}}
{{- define "errand.pool" -}}
{{- $all := deepCopy (index . 0).Values.worker -}}
{{- range $key, $value := index . 1 -}}
{{- if eq $key "env" }}{{ range $name, $one := $value }}{{ $_ := set $all.env $name $one }}{{ end -}}
{{- else }}{{ $_ := set $all $key $value }}{{ end -}}
{{- end -}}
{{- $suffix := eq $all.name "default" | ternary "" (print "-" $all.name) -}}
{{- set $all "fullname" (print (index . 0).Release.Name "-worker" $suffix) | toJson -}}
{{- end }}

{{- define "errand.image" -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end }}

{{- /* What the pods of front doors and workers have in common, and what workers need for the sandbox of their runs: (list $ isolation). */ -}}
{{- define "errand.pod" -}}
automountServiceAccountToken: false # the agent must not find a token
enableServiceLinks: false
{{- with (index . 0).Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
{{- if eq (index . 1) "sandboxed" }}
  seccompProfile:
    {{- toYaml (index . 0).Values.sandbox.seccompProfile | nindent 4 }}
  appArmorProfile:
    {{- toYaml (index . 0).Values.sandbox.appArmorProfile | nindent 4 }}
hostUsers: false # root of a container is nobody on the node; a whole /proc requires it
{{- else }}
  seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- end }}

{{- /* Likewise for the container: (list $ isolation). */ -}}
{{- define "errand.container" -}}
image: {{ include "errand.image" (index . 0).Values.image }}
imagePullPolicy: {{ (index . 0).Values.image.pullPolicy }}
securityContext: {{ include "errand.restricted" (index . 1) }}
{{- end }}

{{- define "errand.restricted" -}}
{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}
{{- if eq . "sandboxed" }}, procMount: Unmasked{{ end }}}
{{- end }}

{{- /* Variables for all, from the ConfigMap and the Secrets: (list $ secret). */ -}}
{{- define "errand.envFrom" -}}
- configMapRef: {name: {{ (index . 0).Release.Name }}}
- secretRef: {name: {{ (index . 0).Values.secrets.shared }}{{ if (index . 0).Values.redis.bundled }}, optional: true{{ end }}}
- secretRef: {name: {{ index . 1 }}}
{{- end }}

{{- define "errand.env" -}}
- {name: ERRAND_STATE_DIR, value: /var/lib/errand}
- {name: ERRAND_CONFIG, value: /etc/errand/errand.yaml}
{{- if .Values.redis.bundled }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .Values.redis.secret }}, key: password}}
- {name: REDIS_URL, value: "redis://:$(REDIS_PASSWORD)@{{ .Release.Name }}-redis:6379/0"}
{{- else if .Values.redis.caSecret }}
- {name: ERRAND_REDIS_CA_FILE, value: /etc/errand-redis/ca.crt}
{{- end }}
{{- end }}

{{- define "errand.mounts" -}}
- {name: config, mountPath: /etc/errand, readOnly: true}
{{- if .Values.redis.caSecret }}
- {name: redis-ca, mountPath: /etc/errand-redis, readOnly: true}
{{- end }}
{{- end }}

{{- define "errand.volumes" -}}
- name: config
  configMap: {name: {{ .Release.Name }}-files}
{{- if .Values.redis.caSecret }}
- name: redis-ca
  secret: {secretName: {{ .Values.redis.caSecret }}}
{{- end }}
{{- end }}

{{- /* A value as a quoted string. Helm itself would write a large number with an exponent. */ -}}
{{- define "errand.value" -}}
{{ kindIs "string" . | ternary . (toJson .) | quote }}
{{- end }}

{{- /* A map as a list of variables. */ -}}
{{- define "errand.variables" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ include "errand.value" $value }}}
{{- end }}
{{- end }}

{{- /* New pods after a change of the settings. */ -}}
{{- define "errand.checksum" -}}
checksum/settings: {{ list .Values.settings .Values.errandYaml | toJson | sha256sum | trunc 16 | quote }}
{{- end }}

{{- /* Where front doors and workers connect to. */ -}}
{{- define "errand.egress" -}}
{{- with .Values.networkPolicy -}}
- to:
    {{- toYaml .dns | nindent 4 }}
  ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
- to: # Redis
    {{- if $.Values.redis.bundled }}
    - podSelector:
        matchLabels:
          {{- include "errand.labels" (list $ "redis") | nindent 10 }}
    {{- else }}
    {{- toYaml .redis.to | nindent 4 }}
    {{- end }}
  ports:
    {{- range $.Values.redis.ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
- to: # the model, Slack, GitHub and package registries, but nothing in private networks
    - ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 100.64.0.0/10, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16]}
    - ipBlock: {cidr: "::/0", except: ["fc00::/7", "fe80::/10"]}
  ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}
{{- end }}

{{- /* The pod of a worker: (list $top pool labels). */ -}}
{{- define "errand.worker" -}}
{{- $top := index . 0 }}{{ $pool := index . 1 }}{{ $labels := index . 2 -}}
metadata:
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- include "errand.checksum" $top | nindent 4 }}
spec:
  {{- include "errand.pod" (list $top $pool.isolation) | nindent 2 }}
  # Drain 45 s < shutdown 60 s < this. A shorter time would kill runs while they stop.
  terminationGracePeriodSeconds: 90
  {{- if and (eq $pool.isolation "container") (eq $pool.autoscaling.kind "keda") }}
  restartPolicy: Never
  {{- end }}
  {{- with $pool.pod }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  containers:
    - name: worker
      {{- include "errand.container" (list $top $pool.isolation) | nindent 6 }}
      {{- if eq $pool.isolation "container" }}
      args: [worker, -once, {{ if eq $pool.autoscaling.kind "keda" }}-wait=2m, {{ end }}"-empty=/var/lib/errand:/tmp:/dev/shm:/dev/mqueue:/dev/termination-log"]
      {{- else }}
      args: [worker]
      {{- end }}
      envFrom:
        {{- include "errand.envFrom" (list $top $top.Values.secrets.worker) | nindent 8 }}
      env:
        {{- include "errand.env" $top | nindent 8 }}
        - {name: ERRAND_POOL, value: {{ quote $pool.name }}}
        - {name: ERRAND_SANDBOX, value: {{ eq $pool.isolation "shared" | ternary "none" "auto" }}}
        # For the probes, and for front doors that fetch logs. Only /livez and /readyz need no token.
        - {name: ERRAND_WORKER_ADDR, value: ":8081"}
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        - {name: ERRAND_WORKER_URL, value: {{ quote $pool.url }}}
        {{- include "errand.variables" $pool.env | trim | nindent 8 }}
      ports:
        - {name: probes, containerPort: 8081}
      # For the disruption budget, and to stop a rollout whose workers cannot use their CLI. A worker takes tasks from Redis, not from a
      # Service.
      readinessProbe:
        httpGet: {path: /readyz, port: probes}
        periodSeconds: 5
        timeoutSeconds: 5
      livenessProbe: # not /readyz: a worker without Redis must continue its runs
        httpGet: {path: /livez, port: probes}
        initialDelaySeconds: 10
        timeoutSeconds: 5
      resources:
        {{- toYaml $pool.resources | nindent 8 }}
      volumeMounts:
        {{- include "errand.mounts" $top | nindent 8 }}
        - {name: state, mountPath: /var/lib/errand}
        - {name: tmp, mountPath: /tmp}
  volumes:
    {{- include "errand.volumes" $top | nindent 4 }}
    - name: state
      emptyDir: {sizeLimit: {{ $pool.disk }}}
    - name: tmp # too large for memory
      emptyDir: {sizeLimit: {{ $pool.tmp }}}
{{- end }}
