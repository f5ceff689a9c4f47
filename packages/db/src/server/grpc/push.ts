import type { Message } from '@bufbuild/protobuf';
import { computeOnce } from '../service/compute-once.js';
import type { PushSource, PushSink } from '../service/push-source.js';
import type { StreamSender } from './sender.js';

/**
 * Lets a stream push its messages, all of one turn in one write. Streams with the same view share
 * message arrays, so the bytes are encoded once for each `frame` function.
 */
export function pushThrough(
  sender: StreamSender,
  messages: object & Partial<PushSource<Message>>,
  frame: (message: Message) => Buffer,
): void {
  const sink: PushSink<Message> = {
    hasRoom: () => sender.hasRoom(),
    take: (some) => sender.push(computeOnce(some, rowOf, frame)),
  };
  messages.pushTo?.(sink);
}

function rowOf(messages: readonly Message[], frame: (message: Message) => Buffer): Buffer {
  const frames = messages.map(frame);
  return frames.length === 1 ? frames[0]! : Buffer.concat(frames);
}
