{{/*
Adds what a folder of manifests/ says to .state.objects, as kustomize would: its resources, labels, generated ConfigMaps and patches.
What it says that is not known here ends the rendering, so nothing is left out in silence.
*/}}
{{- define "placer.folder" -}}
{{- $state := .state -}}
{{- $folder := .folder -}}
{{- $files := .state.root.Files -}}
{{- $said := $files.Get (printf "manifests/%s/kustomization.yaml" $folder) | fromYaml -}}
{{- $unknown := without (keys $said) "apiVersion" "kind" "namespace" "labels" "resources" "configMapGenerator" "patches" -}}
{{- if $unknown }}{{ fail (printf "manifests/%s/kustomization.yaml: found %s, which the chart does not know" $folder (join ", " $unknown)) }}{{ end -}}
{{- $own := list -}}
{{- range $said.resources -}}
{{- if hasSuffix ".yaml" . -}}
{{- range regexSplit "(?m)^---$" ($files.Get (printf "manifests/%s/%s" $folder .)) -1 -}}
{{- $own = append $own (fromYaml .) -}}
{{- end -}}
{{- else if ne . "../../base" -}}
{{- fail (printf "manifests/%s/kustomization.yaml: found the resource %s, expected files and ../../base" $folder .) -}}
{{- end -}}
{{- end -}}
{{- range $said.configMapGenerator -}}
{{- $data := dict -}}
{{- range .files }}{{ $_ := set $data . ($files.Get (printf "manifests/%s/%s" $folder .)) }}{{ end -}}
{{- $metadata := dict "name" .name -}}
{{- with .namespace }}{{ $_ := set $metadata "namespace" . }}{{ end -}}
{{- with .options.labels }}{{ $_ := set $metadata "labels" . }}{{ end -}}
{{- $own = append $own (dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" $metadata "data" $data) -}}
{{- end -}}
{{- $cluster := list "Namespace" "PriorityClass" "ClusterRole" "ClusterRoleBinding" "FlowSchema" "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" -}}
{{- range $own -}}
{{- if and $said.namespace (not (has .kind $cluster)) }}{{ $_ := set .metadata "namespace" $said.namespace }}{{ end -}}
{{- end -}}
{{- $_ := set $state "objects" (concat $state.objects $own) -}}
{{- range $label := $said.labels -}}
{{- range $state.objects -}}
{{- if or (eq $folder "base") (has . $own) (hasPrefix "overlays/" $folder) -}}
{{- include "placer.label" (list . $label.pairs) -}}
{{- if $label.includeTemplates -}}
{{- if eq .kind "CronJob" -}}
{{- include "placer.label" (list .spec.jobTemplate $label.pairs) -}}
{{- include "placer.label" (list .spec.jobTemplate.spec.template $label.pairs) -}}
{{- else if has .kind (list "Deployment" "DaemonSet") -}}
{{- include "placer.label" (list .spec.template $label.pairs) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $said.patches }}{{ include "placer.patch" (dict "state" $state "folder" $folder "patch" .) }}{{ end -}}
{{- end -}}

{{/* Gives labels to an object or a template: (list OBJECT PAIRS). */}}
{{- define "placer.label" -}}
{{- $object := index . 0 -}}
{{- $metadata := get $object "metadata" | default dict -}}
{{- $_ := set $metadata "labels" (merge (dict) (index . 1) ($metadata.labels | default dict)) -}}
{{- $_ := set $object "metadata" $metadata -}}
{{- end -}}

{{/* Carries out a patch: objects that go, data of a ConfigMap, a rule of a role that goes, or an argument that comes. */}}
{{- define "placer.patch" -}}
{{- $state := .state -}}
{{- $why := printf "manifests/%s/kustomization.yaml: found a patch that the chart does not know: %s" .folder .patch.patch -}}
{{- if contains "$patch: delete" .patch.patch -}}
{{- $gone := .patch.target -}}
{{- if not $gone }}{{ $gone = fromYaml .patch.patch }}{{ $gone = dict "kind" $gone.kind "name" $gone.metadata.name }}{{ end -}}
{{- $kept := list -}}
{{- range $state.objects -}}
{{- if not (and (eq .kind $gone.kind) (regexMatch (printf "^(%s)$" $gone.name) .metadata.name)) }}{{ $kept = append $kept . }}{{ end -}}
{{- end -}}
{{- $_ := set $state "objects" $kept -}}
{{- else if not .patch.target -}}
{{- $change := fromYaml .patch.patch -}}
{{- if ne $change.kind "ConfigMap" }}{{ fail $why }}{{ end -}}
{{- range $state.objects -}}
{{- if and (eq .kind "ConfigMap") (eq .metadata.name $change.metadata.name) }}{{ $_ := set . "data" $change.data }}{{ end -}}
{{- end -}}
{{- else -}}
{{- $target := .patch.target -}}
{{- range fromYamlArray .patch.patch -}}
{{- if and (eq .op "add") (has $target.kind (list "CronJob" "Deployment")) (hasSuffix "/containers/0/args/-" .path) -}}
{{- if eq $target.kind $state.workload }}{{ $_ := set $state "args" (append $state.args .value) }}{{ end -}}
{{- else if and (eq .op "remove") (regexMatch "^/rules/[0-9]+$" .path) -}}
{{- $place := trimPrefix "/rules/" .path | int -}}
{{- range $state.objects -}}
{{- if and (eq .kind $target.kind) (eq .metadata.name $target.name) -}}
{{- $_ := set . "rules" (concat (slice .rules 0 $place) (slice .rules (add1 $place | int))) -}}
{{- end -}}
{{- end -}}
{{- else if ne .op "test" -}}
{{- fail $why -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Names the image of a container, where one is given: (list CONTAINER IMAGE). */}}
{{- define "placer.image" -}}
{{- $container := index . 0 -}}
{{- with index . 1 }}{{ $_ := set $container "image" . }}{{ end -}}
{{- end -}}
