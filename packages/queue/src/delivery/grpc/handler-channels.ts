import { isIP } from 'node:net';
import { Client, credentials, type ChannelOptions } from '@grpc/grpc-js';
import type { Clock, Timer } from '@millrace/kit/clock';
import { addressText } from '@millrace/kit/config';
import type { AddressPolicy, Resolver, Target } from '@millrace/kit/outbound';

export interface ChannelLimits {
  /** Channels that are open at the same time. */
  maxChannels: number;
  /** A channel without calls is closed after this time. */
  idleMs: number;
  /** The addresses of a name are looked up again after this time. */
  addressesMs: number;
}

export const defaultChannelLimits: ChannelLimits = {
  maxChannels: 256,
  idleMs: 60_000,
  addressesMs: 30_000,
};

export interface ChannelTools {
  clock: Clock;
  resolver: Resolver;
  limits: ChannelLimits;
  /** PEM certificates to trust; those of Node if absent. */
  rootCertificates?: Buffer | undefined;
}

/** A channel to the addresses of one target, all of which the policy allows. */
export interface Channel {
  readonly client: Client;
  readonly addresses: readonly string[];
  calls: number;
  idle: Timer | undefined;
}

export type ChannelResult =
  | { kind: 'open'; channel: Channel }
  | { kind: 'blocked'; message: string; address: string }
  | { kind: 'unknown_host'; message: string };

/** Messages above this size are refused; results are much smaller. */
const maxResponseBytes = 4 * 2 ** 20;

const baseOptions: ChannelOptions = {
  // A proxy or a service config of the environment could lead to an address that is not checked.
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  // Retries are the queue's own.
  'grpc.enable_retries': 0,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  'grpc.max_send_message_length': -1,
  'grpc.max_receive_message_length': maxResponseBytes,
  'grpc.use_local_subchannel_pool': 1,
};

/**
 * One channel per target. A name is resolved here and the channel gets IP addresses, so that it
 * cannot connect to an address that was not checked.
 */
export class HandlerChannels {
  readonly #channels = new Map<string, Channel>();
  readonly #addresses = new Map<string, { at: number; addresses: readonly string[] }>();

  constructor(private readonly tools: ChannelTools) {}

  get size(): number {
    return this.#channels.size;
  }

  /** Opens or reuses a channel; each `open` needs a `release`. */
  async open(target: Target, policy: AddressPolicy): Promise<ChannelResult> {
    const found = target.isAddress ? [target.host] : await this.#resolve(target.host);
    if (typeof found === 'string') return { kind: 'unknown_host', message: found };
    for (const address of found) {
      const reason = policy.denyReason(address);
      if (reason === undefined) continue;
      const message = target.isAddress ? reason : `${target.host}: ${reason}`;
      return { kind: 'blocked', message, address };
    }
    const [first = ''] = found;
    // A channel has addresses of one family.
    const addresses = found.filter((address) => isIP(address) === isIP(first)).toSorted();
    const key = `${target.origin} ${addresses.join()}`;
    const channel = this.#channels.get(key) ?? this.#connect(target, addresses);
    // The most recently used one is last.
    this.#channels.delete(key);
    this.#channels.set(key, channel);
    channel.calls++;
    channel.idle?.cancel();
    this.#closeSurplus();
    return { kind: 'open', channel };
  }

  release(channel: Channel): void {
    channel.calls--;
    if (channel.calls > 0) return;
    channel.idle = this.tools.clock.after(this.tools.limits.idleMs, () => this.#close(channel));
    this.#closeSurplus();
  }

  close(): void {
    for (const channel of this.#channels.values()) this.#close(channel);
  }

  async #resolve(host: string): Promise<readonly string[] | string> {
    const { clock, resolver, limits } = this.tools;
    const known = this.#addresses.get(host);
    const now = clock.monotonic();
    if (known && now - known.at < limits.addressesMs) return known.addresses;
    try {
      const addresses = [...new Set(await resolver(host))];
      if (addresses.length === 0) return `${host} has no address`;
      if (this.#addresses.size >= limits.maxChannels) this.#addresses.clear();
      this.#addresses.set(host, { at: now, addresses });
      return addresses;
    } catch (error) {
      this.#addresses.delete(host);
      return error instanceof Error ? error.message : String(error);
    }
  }

  #connect(target: Target, addresses: readonly string[]): Channel {
    const { scheme, host, port, isAddress, authority } = target;
    const family = isIP(addresses[0]!) === 6 ? 'ipv6' : 'ipv4';
    const places = addresses.map((address) => addressText({ host: address, port }));
    const isSecure = scheme === 'grpcs';
    const client = new Client(
      `${family}:${places.join()}`,
      isSecure ? this.#secure() : credentials.createInsecure(),
      {
        ...baseOptions,
        'grpc.default_authority': authority,
        ...(isSecure && !isAddress && { 'grpc.ssl_target_name_override': host }),
      },
    );
    return { client, addresses, calls: 0, idle: undefined };
  }

  #secure() {
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot disable it.
    const verify = { rejectUnauthorized: true };
    return credentials.createSsl(this.tools.rootCertificates ?? null, null, null, verify);
  }

  #close(channel: Channel): void {
    channel.idle?.cancel();
    for (const [key, known] of this.#channels) {
      if (known === channel) this.#channels.delete(key);
    }
    channel.client.close();
  }

  /** Channels with calls stay open: `max_in_flight` of their queues limits those. */
  #closeSurplus(): void {
    let surplus = this.#channels.size - this.tools.limits.maxChannels;
    for (const channel of this.#channels.values()) {
      if (surplus <= 0) return;
      if (channel.calls > 0) continue;
      this.#close(channel);
      surplus--;
    }
  }
}
