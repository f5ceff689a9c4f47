import type { ReactNode } from 'react';
import { bytes, count, duration } from '../../parts/format.js';
import { Time } from '../../parts/time.js';
import type { QueueConfig } from './api.js';

/** A queue's config as sentences and figures, in the groups that it is written in. */
export function ConfigView({ config }: { config: QueueConfig }) {
  const { callback, retry, limits, lease, retention, circuit_breaker, ordering } = config;
  return (
    <div className="queue-config">
      <Group title="Callback">
        <Fact name="URL">{callback.url}</Fact>
        <Fact name="Time limit">
          {duration(callback.timeout_ms)}, {duration(callback.connect_timeout_ms)} to connect,{' '}
          {duration(callback.async_timeout_ms)} when answered later
        </Fact>
        <Fact name="Auth">{authText(callback.auth)}</Fact>
        <Fact name="Signed with">{callback.signing?.secret_refs.join(', ') ?? 'nothing'}</Fact>
      </Group>
      <Group title="Retry">
        <Fact name="Attempts">{count(retry.max_attempts)}</Fact>
        <Fact name="Waits">
          {duration(retry.initial_backoff_ms)}, then × {retry.multiplier}, at most{' '}
          {duration(retry.max_backoff_ms)}
        </Fact>
        <Fact name="Also retried">{retry.retry_statuses.join(', ') || 'nothing more'}</Fact>
        <Fact name="Dead at once">{retry.dead_statuses.join(', ') || 'nothing more'}</Fact>
      </Group>
      <Group title="Circuit breaker">
        <Fact name="Opens">{breakerText(circuit_breaker)}</Fact>
        {circuit_breaker.enabled && (
          <Fact name="Rests for">{duration(circuit_breaker.open_ms)}, then tries 3</Fact>
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
      <Group title="Keeping">
        <Fact name="Order">
          {ordering.mode === 'group' ? 'in order within a group' : 'none promised'}
        </Fact>
        <Fact name="Lease">callback time and {duration(lease.grace_ms)}</Fact>
        <Fact name="Succeeded">kept {duration(retention.succeeded_ms)}</Fact>
        <Fact name="Dead">
          {retention.dead_ms === 0 ? 'kept until purged' : `kept ${duration(retention.dead_ms)}`}
        </Fact>
      </Group>
      <Group title="Config">
        {config.description && <Fact name="About">{config.description}</Fact>}
        <Fact name="Version">{config.version}</Fact>
        <Fact name="Written">
          <Time at={config.updated_at} />
        </Fact>
        <Fact name="Made">
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

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function authText(auth: QueueConfig['callback']['auth']): string {
  return auth.type === 'none' ? 'none' : `${auth.type}, secret ${auth.secret_ref}`;
}

function breakerText(breaker: QueueConfig['circuit_breaker']): string {
  if (!breaker.enabled) return 'never: it is switched off';
  const { failure_ratio, min_requests, window_ms } = breaker;
  const share = Math.round(failure_ratio * 100);
  return `when ${share}% of at least ${min_requests} fail within ${duration(window_ms)}`;
}

function perSecond(rate: number): string {
  return rate === 0 ? 'no limit' : `${count(rate)} a second`;
}
