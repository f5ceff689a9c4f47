import { createSecureContext, rootCertificates as systemRoots } from 'node:tls';
import type { Clock, Timer } from '@millrace/kit/clock';
import type { AddressPolicy, Resolver, Target } from '@millrace/kit/outbound';
import { Channel } from '@millrace/wire/grpc-client';
import { dialTarget, systemConnect, type DialTools } from '@millrace/wire/http1';

export interface ChannelLimits {
  /** Channels that are open at the same time. */
  maxChannels: number;
  /** A channel without calls is closed after this time. */
  idleMs: number;
}

export const defaultChannelLimits: ChannelLimits = { maxChannels: 256, idleMs: 60_000 };

export interface ChannelTools {
  clock: Clock;
  resolver: Resolver;
  limits: ChannelLimits;
  /** PEM certificates to trust besides those of Node. */
  rootCertificates?: Buffer | undefined;
}

/** A channel to one target, which connects only to addresses that its policy allows. */
export interface HandlerChannel {
  readonly key: string;
  readonly channel: Channel;
  /** The address of the last connection. */
  remoteIp: string | undefined;
  calls: number;
  idle: Timer | undefined;
}

/** Messages above this size are refused; results are much smaller. */
const maxMessageBytes = 4 * 2 ** 20;

/** One channel per target, policy and connect timeout. */
export class HandlerChannels {
  readonly #channels = new Map<string, HandlerChannel>();
  readonly #dialTools: DialTools;

  constructor(private readonly tools: ChannelTools) {
    const { clock, resolver, rootCertificates: extra } = tools;
    const secureContext = extra && createSecureContext({ ca: [...systemRoots, extra] });
    this.#dialTools = { clock, resolver, connect: systemConnect, secureContext };
  }

  get size(): number {
    return this.#channels.size;
  }

  /** Opens or reuses a channel; each `open` needs a `release`. */
  open(target: Target, policy: AddressPolicy, connectTimeoutMs: number): HandlerChannel {
    const key = `${target.origin} ${policy.key} ${connectTimeoutMs}`;
    const found = this.#channels.get(key) ?? this.#create(key, target, policy, connectTimeoutMs);
    // The most recently used one is last.
    this.#channels.delete(key);
    this.#channels.set(key, found);
    found.calls++;
    found.idle?.cancel();
    this.#closeSurplus();
    return found;
  }

  release(channel: HandlerChannel): void {
    channel.calls--;
    if (channel.calls > 0) return;
    channel.idle = this.tools.clock.after(this.tools.limits.idleMs, () => this.#close(channel));
    this.#closeSurplus();
  }

  close(): void {
    for (const channel of this.#channels.values()) this.#close(channel);
  }

  #create(
    key: string,
    target: Target,
    policy: AddressPolicy,
    connectTimeoutMs: number,
  ): HandlerChannel {
    const params = { target, policy, connectTimeoutMs };
    const created: HandlerChannel = {
      key,
      channel: new Channel({
        place: async (signal) => {
          const { socket, remoteIp } = await dialTarget(params, this.#dialTools, signal);
          created.remoteIp = remoteIp;
          return socket;
        },
        tls: target.scheme === 'grpcs' ? {} : undefined,
        authority: target.authority,
        clock: this.tools.clock,
        connectTimeoutMs,
        maxMessageBytes,
      }),
      remoteIp: undefined,
      calls: 0,
      idle: undefined,
    };
    return created;
  }

  #close(channel: HandlerChannel): void {
    channel.idle?.cancel();
    this.#channels.delete(channel.key);
    channel.channel.close();
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
