{{- define "patra.name" -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}

{{- define "patra.labels" -}}
app.kubernetes.io/name: patra
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "patra.selector" -}}
app.kubernetes.io/name: patra
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "patra.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Names under which the API is called: the service's, short and long, and that of the ingress. */ -}}
{{- define "patra.hosts" -}}
{{- $name := include "patra.name" . -}}
{{- $service := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- if .Values.web.ingress.host -}}{{- $service = append $service .Values.web.ingress.host -}}{{- end -}}
{{- join "," $service -}}
{{- end -}}

{{- define "patra.env" -}}
- name: PATRA_STORE_URL
  value: file:/run/secrets/store/{{ .Values.store.key }}
- name: PATRA_STORE_MIGRATE_ON_START
  value: {{ not .Values.migrations.enabled | quote }}
- name: PATRA_WEB_HOST
  value: 0.0.0.0
- name: PATRA_WEB_ADMIN_TOKENS
  value: admin=file:/run/secrets/tokens/{{ .Values.tokens.admin }}
- name: PATRA_WEB_VIEWER_TOKENS
  value: prometheus=file:/run/secrets/tokens/{{ .Values.tokens.viewer }}
- name: PATRA_WEB_ALLOWED_HOSTS
  value: {{ include "patra.hosts" . | quote }}
{{- with .Values.publicUrl }}
- name: PATRA_WEB_PUBLIC_URL
  value: {{ . | quote }}
{{- end }}
{{- if .Values.redis.existingSecret }}
- name: PATRA_INGEST_REDIS_URL
  value: file:/run/secrets/redis/{{ .Values.redis.key }}
{{- end }}
{{- if .Values.nats.existingSecret }}
- name: PATRA_BUS_NATS_URL
  value: file:/run/secrets/nats/{{ .Values.nats.key }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "patra.envFrom" -}}
{{- range .Values.secretVariables }}
- secretRef: {name: {{ . }}}
{{- end }}
{{- end -}}

{{- define "patra.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: data, mountPath: /var/lib/patra}
- {name: store, mountPath: /run/secrets/store, readOnly: true}
- {name: tokens, mountPath: /run/secrets/tokens, readOnly: true}
{{- if .Values.redis.existingSecret }}
- {name: redis, mountPath: /run/secrets/redis, readOnly: true}
{{- end }}
{{- if .Values.nats.existingSecret }}
- {name: nats, mountPath: /run/secrets/nats, readOnly: true}
{{- end }}
{{- end -}}

{{- define "patra.volumes" -}}
- {name: tmp, emptyDir: {}}
- {name: data, emptyDir: {}}
- {name: store, secret: {secretName: {{ .Values.store.existingSecret }}}}
- {name: tokens, secret: {secretName: {{ .Values.tokens.existingSecret }}}}
{{- with .Values.redis.existingSecret }}
- {name: redis, secret: {secretName: {{ . }}}}
{{- end }}
{{- with .Values.nats.existingSecret }}
- {name: nats, secret: {secretName: {{ . }}}}
{{- end }}
{{- end -}}

{{- define "patra.podSecurity" -}}
automountServiceAccountToken: false
terminationGracePeriodSeconds: 25
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "patra.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "patra.probes" -}}
startupProbe:
  httpGet: {path: /health, port: http}
  failureThreshold: 30
  periodSeconds: 2
livenessProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 10
  timeoutSeconds: 3
readinessProbe:
  httpGet: {path: /ready, port: http}
  periodSeconds: 5
  timeoutSeconds: 3
{{- end -}}

{{- /* One deployment: root, component, args, replicas, autoscaled, resources */ -}}
{{- define "patra.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "patra.name" .root }}-{{ .component }}
  labels:
    {{- include "patra.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not .autoscaled }}
  replicas: {{ .replicas }}
  {{- end }}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector:
    matchLabels: {{- include "patra.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "patra.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
    spec:
      {{- include "patra.podSecurity" .root | nindent 6 }}
      containers:
        - name: patra
          image: {{ include "patra.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: {{- toYaml .args | nindent 12 }}
          env: {{- include "patra.env" .root | nindent 12 }}
          {{- with include "patra.envFrom" .root }}
          envFrom: {{- . | nindent 12 }}
          {{- end }}
          ports: [{name: http, containerPort: 8642}]
          {{- include "patra.probes" .root | nindent 10 }}
          resources: {{- toYaml .resources | nindent 12 }}
          securityContext: {{- include "patra.containerSecurity" .root | nindent 12 }}
          volumeMounts: {{- include "patra.mounts" .root | nindent 12 }}
      volumes: {{- include "patra.volumes" .root | nindent 8 }}
{{- end -}}
