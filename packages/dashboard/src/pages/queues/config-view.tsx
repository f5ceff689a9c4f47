import type { ReactNode } from 'react';
import { bytes, count, duration } from '../../parts/format.js';
import { Fact } from '../../parts/page.js';
import { Time } from '../../parts/time.js';
import type { QueueConfig } from '../../queue/api.js';

/** A queue's config, grouped as in the config file. */
export function ConfigView({ config }: { config: QueueConfig }) {
  const { callback, retry, limits, lease, retention, circuit_breaker, ordering } = config;
  return (
    <div className="queue-config">
      <Group title="Callback">
        <Fact name="URL">{callback.url ?? 'pull'}</Fact>
        <Fact name="Timeout">
          {duration(callback.timeout_ms)}; connect {duration(callback.connect_timeout_ms)}; async{' '}
          {duration(callback.async_timeout_ms)}
        </Fact>
        <Fact name="Auth">{authText(callback.auth)}</Fact>
        <Fact name="Signing">{callback.signing?.secret_refs.join(', ') ?? 'none'}</Fact>
      </Group>
      <Group title="Retry">
        <Fact name="Attempts">{count(retry.max_attempts)}</Fact>
        <Fact name="Backoff">
          {duration(retry.initial_backoff_ms)} × {retry.multiplier}, max{' '}
          {duration(retry.max_backoff_ms)}
        </Fact>
        <Fact name="Extra retry statuses">{retry.retry_statuses.join(', ') || 'none'}</Fact>
        <Fact name="Extra permanent statuses">{retry.dead_statuses.join(', ') || 'none'}</Fact>
      </Group>
      <Group title="Circuit breaker">
        <Fact name="Opens">{breakerText(circuit_breaker)}</Fact>
        {circuit_breaker.enabled && (
          <Fact name="Stays open">{duration(circuit_breaker.open_ms)}, then 3 test calls</Fact>
        )}
      </Group>
      <Group title="Limits">
        <Fact name="In flight">{count(limits.max_in_flight)}</Fact>
        <Fact name="Payload">{bytes(limits.max_payload_bytes)}</Fact>
        <Fact name="Dispatch">{perSecond(limits.dispatch_per_second)}</Fact>
        <Fact name="Submit">{perSecond(limits.submit_per_second)}</Fact>
        <Fact name="Pending">
          {limits.max_pending === 0 ? 'no limit' : count(limits.max_pending)}
        </Fact>
      </Group>
      <Group title="Delivery">
        <Fact name="Ordering">
          {ordering.mode === 'group' ? 'FIFO within a group' : 'not guaranteed'}
        </Fact>
        <Fact name="Lease">callback timeout + {duration(lease.grace_ms)}</Fact>
      </Group>
      <Group title="Retention">
        <Fact name="Succeeded">{duration(retention.succeeded_ms)}</Fact>
        <Fact name="Dead">
          {retention.dead_ms === 0 ? 'until purged' : duration(retention.dead_ms)}
        </Fact>
      </Group>
      <Group title="Config">
        {config.description && <Fact name="Description">{config.description}</Fact>}
        <Fact name="Version">{config.version}</Fact>
        <Fact name="Updated">
          <Time at={config.updated_at} />
        </Fact>
        <Fact name="Created">
          <Time at={config.created_at} />
        </Fact>
      </Group>
    </div>
  );
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div>
      <h3>{title}</h3>
      <dl className="facts">{children}</dl>
    </div>
  );
}

function authText(auth: QueueConfig['callback']['auth']): string {
  return auth.type === 'none' ? 'none' : `${auth.type}, secret ${auth.secret_ref}`;
}

function breakerText(breaker: QueueConfig['circuit_breaker']): string {
  if (!breaker.enabled) return 'never: disabled';
  const { failure_ratio, min_requests, window_ms } = breaker;
  const share = Math.round(failure_ratio * 100);
  return `at ${share}% failures of at least ${min_requests} calls in ${duration(window_ms)}`;
}

function perSecond(rate: number): string {
  return rate === 0 ? 'no limit' : `${count(rate)}/s`;
}
