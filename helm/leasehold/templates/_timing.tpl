{{/* How long a pod may take to end. Whole seconds, rounded up. */}}

{{/* dict "text" "1.5s", "what": milliseconds. */}}
{{- define "leasehold.millis" -}}
{{- $text := toString .text -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?(ms|s|m|h)$" $text) -}}
{{- fail (printf "%s: %q must be a duration like \"20s\" written out, since the chart works out the pod's grace period from it" .what $text) -}}
{{- end -}}
{{- $scale := get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexFind "[a-z]+$" $text) -}}
{{- mulf (regexFind "^[0-9.]+" $text | float64) $scale | ceil | int64 -}}
{{- end -}}

{{/* dict "millis": seconds, rounded up. */}}
{{- define "leasehold.ceilSeconds" -}}
{{- div (add . 999) 1000 -}}
{{- end -}}

{{/*
step_down_hold_off of one lease in milliseconds, as the sidecar derives it where it is "auto":
5 s, or poll_interval + renew_call_timeout + 1 s where that is longer. renew_call_timeout is never
more than the least of 5 s and ttl / 6, which is what stands here: an upper bound.
*/}}
{{- define "leasehold.holdOff" -}}
{{- $lease := .lease -}}
{{- $given := default "auto" $lease.step_down_hold_off -}}
{{- if ne $given "auto" -}}
{{- include "leasehold.millis" (dict "text" $given "what" (printf "%s, step_down_hold_off" .what)) -}}
{{- else -}}
{{- $ttl := include "leasehold.millis" (dict "text" (default "10s" $lease.ttl) "what" (printf "%s, ttl" .what)) | int64 -}}
{{- $poll := max 250 (min 5000 (div $ttl 10)) -}}
{{- if ne (default "auto" $lease.poll_interval) "auto" -}}
{{- $poll = include "leasehold.millis" (dict "text" $lease.poll_interval "what" (printf "%s, poll_interval" .what)) | int64 -}}
{{- end -}}
{{- $call := min 5000 (add (div $ttl 6) 1) -}}
{{- if ne (default "auto" $lease.renew_call_timeout) "auto" -}}
{{- $call = include "leasehold.millis" (dict "text" $lease.renew_call_timeout "what" (printf "%s, renew_call_timeout" .what)) | int64 -}}
{{- end -}}
{{- max 5000 (add $poll $call 1000) -}}
{{- end -}}
{{- end -}}

{{/*
The leases step down side by side, so the slowest counts: {"drain", "stepDown", "leave"} in seconds, JSON.
leave: a gate that forwards goes on at SIGTERM, when its lease is long given back: what is forwarded may
take step_down_grace more, what is held a hold-off. So does an sqs gate until SQS has answered the receives
that are with it. 0 where there is neither.
*/}}
{{- define "leasehold.drainTimes" -}}
{{- $drain := 0 -}}
{{- $stepDown := 0 -}}
{{- $leave := 0 -}}
{{- range $lease := .Values.config.lease -}}
{{- $what := printf "config.lease %q" $lease.name -}}
{{- $grace := include "leasehold.millis" (dict "text" (default "20s" $lease.step_down_grace) "what" (printf "%s, step_down_grace" $what)) | int64 -}}
{{- $holdOff := include "leasehold.holdOff" (dict "lease" $lease "what" $what) | int64 -}}
{{- $drain = max $drain $grace -}}
{{- $stepDown = max $stepDown (add $grace $holdOff) -}}
{{- range $gate := $.Values.config.gate -}}
{{- if and (or (eq (default "" $gate.standby) "forward") (eq (default "" $gate.type) "sqs")) (eq (default $lease.name $gate.lease) $lease.name) -}}
{{- $leave = max $leave $grace $holdOff -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "drain" (include "leasehold.ceilSeconds" $drain | int) "stepDown" (include "leasehold.ceilSeconds" $stepDown | int) "leave" (include "leasehold.ceilSeconds" $leave | int) | toJson -}}
{{- end -}}

{{/* How long the application's preStop keeps it alive: until the drain is over, and one second. */}}
{{- define "leasehold.applicationDelay" -}}
{{- $given := .Values.shutdown.applicationDelaySeconds -}}
{{- if kindIs "invalid" $given -}}
{{- $times := include "leasehold.drainTimes" . | fromJson -}}
{{- max (add (int $times.drain) 1) (int .Values.shutdown.lingerSeconds) -}}
{{- else -}}
{{- int $given -}}
{{- end -}}
{{- end -}}

{{/*
terminationGracePeriodSeconds. It runs from the start of both preStop hooks: the application's delay and
its end on one side; drain, release and hold-off (or lingering) on the other. A native sidecar has its
SIGTERM when both are over, and leaves then (see leave above); an ordinary container has it when its own
hook is over, so that this is an upper bound. And the reserve.
*/}}
{{- define "leasehold.gracePeriod" -}}
{{- $shutdown := .Values.shutdown -}}
{{- $times := include "leasehold.drainTimes" . | fromJson -}}
{{- $application := add (include "leasehold.applicationDelay" . | int) (int $shutdown.applicationStopSeconds) -}}
{{- $sidecar := max (int $times.stepDown) (int $shutdown.lingerSeconds) -}}
{{- $least := add (max $application $sidecar) (int $times.leave) (int $shutdown.reserveSeconds) -}}
{{- $given := .Values.terminationGracePeriodSeconds -}}
{{- if kindIs "invalid" $given -}}
{{- $least -}}
{{- else if lt (int $given) (int $least) -}}
{{- fail (printf "terminationGracePeriodSeconds: %d is too small: the longer of step_down_grace with hold-off (%d s) and of the application's delay and stop (%d s), then what gates still forward or wait for at SIGTERM (%d s), and the reserve (%d s) need %d; a pod killed before loses requests" (int $given) (int $sidecar) (int $application) (int $times.leave) (int $shutdown.reserveSeconds) (int $least)) -}}
{{- else -}}
{{- int $given -}}
{{- end -}}
{{- end -}}
