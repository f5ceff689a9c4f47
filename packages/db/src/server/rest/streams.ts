import { Database as Api } from '@millrace/contract/db';
import type { DescField } from '@bufbuild/protobuf';
import type { StreamingRpc } from '../service/call.js';
import { madeOnce } from '../service/made-once.js';
import type { Pushing } from '../service/pushing.js';
import { jsonWriter, writerWithout } from './json-out.js';
import type { ResponseWriter } from './response-writer.js';

type Messages = AsyncIterable<unknown> & Partial<Pushing<unknown>>;

/** How the messages of a streaming method become one HTTP answer. */
export interface StreamForm {
  readonly contentType: string;
  /** Sends the answer; the caller ends it, or says what went wrong in its last piece. */
  deliver(messages: Messages, writer: ResponseWriter): Promise<void>;
  /** The last piece of an answer that fails after it began; undefined: it is cut off. */
  failure: ((status: object) => string) | undefined;
}

// What fits in here is sent in one piece, with its length.
const mostHeldBytes = 1024 * 1024;

function outputOf(rpc: StreamingRpc) {
  return Api.methods.find(({ name }) => name === rpc)!.output;
}

/** How the items of a message's list are written, and the rest of it. */
function partsOf(rpc: StreamingRpc) {
  const output = outputOf(rpc);
  const list = output.fields.find((field) => field.fieldKind === 'list')!;
  const itemsOf = (message: unknown) =>
    (message as Readonly<Record<string, readonly unknown[]>>)[list.localName]!;
  return {
    list,
    itemsOf,
    writeItem: jsonWriter(list.message!),
    writeRest: writerWithout(output, list),
  };
}

/** All messages as one JSON object: their lists joined, the rest as the last one has it. */
export function pageForm(rpc: StreamingRpc): StreamForm {
  const { list, itemsOf, writeItem, writeRest } = partsOf(rpc);
  return {
    contentType: 'application/json',
    failure: undefined,
    async deliver(messages, writer) {
      let held = `{${JSON.stringify(list.name)}:[`;
      let isFirst = true;
      let rest = '{}';
      for await (const message of messages) {
        rest = writeRest(message);
        for (const item of itemsOf(message)) {
          held += (isFirst ? '' : ',') + writeItem(item);
          isFirst = false;
        }
        if (held.length <= mostHeldBytes) continue;
        if (!writer.hasBegun) writer.begin('application/json');
        await writer.write(held);
        held = '';
      }
      const tail = rest.slice(1);
      writer.end('application/json', `${held}]${tail === '}' ? '' : ','}${tail}`);
    },
  };
}

/** Each item of the messages' list on a line of its own, then the rest of the last message. */
export function itemLinesForm(rpc: StreamingRpc): StreamForm {
  const { list, itemsOf, writeItem, writeRest } = partsOf(rpc);
  const label = JSON.stringify(singular(list));
  return {
    contentType: 'application/x-ndjson',
    failure: errorLine,
    async deliver(messages, writer) {
      let rest = '{}';
      for await (const message of messages) {
        rest = writeRest(message);
        let lines = '';
        for (const item of itemsOf(message)) lines += `{${label}:${writeItem(item)}}\n`;
        if (!writer.hasBegun) writer.begin('application/x-ndjson');
        if (lines !== '') await writer.write(lines);
      }
      writer.end('application/x-ndjson', `${rest}\n`);
    },
  };
}

/** `records` holds a `record`. */
function singular(list: DescField): string {
  return list.name.replace(/s$/, '');
}

/** Each message on a line of its own. */
export function messageLinesForm(rpc: StreamingRpc): StreamForm {
  const write = sharedWriter(rpc);
  const deliverPieces = pieceByPiece((message) => `${write(message)}\n`);
  return {
    contentType: 'application/x-ndjson',
    failure: errorLine,
    async deliver(messages, writer) {
      writer.begin('application/x-ndjson');
      await deliverPieces(messages, writer);
      writer.end('application/x-ndjson');
    },
  };
}

/**
 * Sends each message as a piece of text. What comes while the stream waits is pushed, all of a
 * moment in one write; streams that show the same are given the same row, whose text is made once.
 */
function pieceByPiece(pieceOf: (message: unknown) => string) {
  const rowOf = (messages: readonly unknown[]) => Buffer.from(messages.map(pieceOf).join(''));
  return async (messages: Messages, writer: ResponseWriter): Promise<void> => {
    messages.pushTo?.({
      hasRoom: () => writer.hasRoom(),
      take: (some) => writer.push(madeOnce(some, rowOf)),
    });
    for await (const message of messages) await writer.write(pieceOf(message));
  };
}

/** Watches that show the same are given the same messages, whose text is then made once. */
function sharedWriter(rpc: StreamingRpc): (message: unknown) => string {
  const write = jsonWriter(outputOf(rpc));
  return (message) => madeOnce(message as object, write, asText);
}

// Lines and events show the same text.
const asText = 'text';

function errorLine(status: object): string {
  return `${JSON.stringify({ error: status })}\n`;
}

/** Each message as a server-sent event, whose id is the resume token. */
export function eventsForm(rpc: StreamingRpc): StreamForm {
  const write = sharedWriter(rpc);
  const deliverPieces = pieceByPiece((message) => {
    const { resumeToken: token } = message as { readonly resumeToken?: string };
    // An empty id would make a browser forget the one it has.
    const id = token ? `id: ${token}\n` : '';
    return `${id}data: ${write(message)}\n\n`;
  });
  return {
    contentType: 'text/event-stream',
    failure: (status) => `data: ${JSON.stringify({ error: status })}\n\n`,
    async deliver(messages, writer) {
      writer.begin('text/event-stream');
      // Something must be sent for some clients to see that the stream is open.
      await writer.write(': open\n\n');
      await deliverPieces(messages, writer);
      writer.end('text/event-stream');
    },
  };
}
