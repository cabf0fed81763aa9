{{/* Stands in place of `placer` in the names of a release: the release's name, with `-placer` behind it where that has no `placer`. */}}
{{- define "placer.fullname" -}}
{{- if contains "placer" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-placer" (.Release.Name | trunc 33 | trimSuffix "-") }}{{ end -}}
{{- end -}}

{{/* The key of the configuration that an argument is: `--time-limit=5` is timeLimit. */}}
{{- define "placer.key" -}}
{{- regexFind "^--?[^=]+" . | trimPrefix "-" | trimPrefix "-" | camelcase | untitle -}}
{{- end -}}

{{/*
Replaces placer's names in an object by those of the release, at any depth: (list VALUE NAMES). Containers keep their names and arguments.
*/}}
{{- define "placer.rename" -}}
{{- $value := index . 0 -}}
{{- $names := index . 1 -}}
{{- if kindIs "map" $value -}}
{{- range $key, $each := $value -}}
{{- if and (has $key (list "name" "serviceAccountName" "priorityClassName" "policyName" "app")) (kindIs "string" $each) -}}
{{- if regexMatch "^placer(-[a-z-]+)?$" $each }}{{ $_ := set $value $key (printf "%s%s" $names.full (trimPrefix "placer" $each)) }}{{ end -}}
{{- else if and (eq $key "namespace") (kindIs "string" $each) -}}
{{- if eq $each "placer" }}{{ $_ := set $value $key $names.place }}{{ end -}}
{{- else if eq $key "resourceNames" -}}
{{- $renamed := list -}}
{{- range $each }}{{ $renamed = append $renamed (regexReplaceAll "^placer" . $names.lease) }}{{ end -}}
{{- $_ := set $value $key $renamed -}}
{{- else if not (has $key (list "containers" "data")) -}}
{{- include "placer.rename" (list $each $names) -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" $value -}}
{{- range $value }}{{ include "placer.rename" (list . $names) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Has an admission policy look at the account, scheduler name, class, namespace and Lease of the release: (list POLICY NAMES). */}}
{{- define "placer.admission" -}}
{{- $names := index . 1 -}}
{{- range (index . 0).spec.matchConditions -}}
{{- if eq .name "ours" }}{{ $_ := set . "expression" (printf "request.userInfo.username == 'system:serviceaccount:%s:%s'" $names.place $names.full) }}{{ end -}}
{{- end -}}
{{- $said := dict "scheduler" $names.scheduler "class" $names.full "home" $names.place "lease" $names.lease -}}
{{- range (index . 0).spec.variables -}}
{{- if hasKey $said .name }}{{ $_ := set . "expression" (printf "'%s'" (get $said .name)) }}{{ end -}}
{{- end -}}
{{- end -}}
