import { Database as Api } from '@millrace/contract/db';
import type { DescField } from '@bufbuild/protobuf';
import type { StreamingRpc } from '../service/call.js';
import { jsonShower } from './json-out.js';
import type { ResponseWriter } from './response-writer.js';

type Messages = AsyncIterable<unknown>;

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

/** All messages as one JSON object: their lists joined, the rest as the last one has it. */
export function pageForm(rpc: StreamingRpc): StreamForm {
  const output = outputOf(rpc);
  const list = output.fields.find((field) => field.fieldKind === 'list')!;
  const show = jsonShower(output);
  return {
    contentType: 'application/json',
    failure: undefined,
    async deliver(messages, writer) {
      let held = `{${JSON.stringify(list.name)}:[`;
      let isFirst = true;
      let rest: Record<string, unknown> = {};
      for await (const message of messages) {
        const { [list.name]: items, ...others } = show(message);
        rest = others;
        for (const item of items as unknown[]) {
          held += (isFirst ? '' : ',') + JSON.stringify(item);
          isFirst = false;
        }
        if (held.length <= mostHeldBytes) continue;
        if (!writer.hasBegun) writer.begin('application/json');
        await writer.write(held);
        held = '';
      }
      const tail = JSON.stringify(rest).slice(1);
      writer.end('application/json', `${held}]${tail === '}' ? '' : ','}${tail}`);
    },
  };
}

/** Each item of the messages' list on a line of its own, then the rest of the last message. */
export function itemLinesForm(rpc: StreamingRpc): StreamForm {
  const output = outputOf(rpc);
  const list = output.fields.find((field) => field.fieldKind === 'list')!;
  const show = jsonShower(output);
  const item = JSON.stringify(singular(list));
  return {
    contentType: 'application/x-ndjson',
    failure: errorLine,
    async deliver(messages, writer) {
      let rest: Record<string, unknown> = {};
      for await (const message of messages) {
        const { [list.name]: items, ...others } = show(message);
        rest = others;
        let lines = '';
        for (const each of items as unknown[]) lines += `{${item}:${JSON.stringify(each)}}\n`;
        if (!writer.hasBegun) writer.begin('application/x-ndjson');
        if (lines !== '') await writer.write(lines);
      }
      writer.end('application/x-ndjson', `${JSON.stringify(rest)}\n`);
    },
  };
}

/** `records` holds a `record`. */
function singular(list: DescField): string {
  return list.name.replace(/s$/, '');
}

/** Each message on a line of its own. */
export function messageLinesForm(rpc: StreamingRpc): StreamForm {
  const show = jsonShower(outputOf(rpc));
  return {
    contentType: 'application/x-ndjson',
    failure: errorLine,
    async deliver(messages, writer) {
      writer.begin('application/x-ndjson');
      for await (const message of messages) {
        await writer.write(`${JSON.stringify(show(message))}\n`);
      }
      writer.end('application/x-ndjson');
    },
  };
}

function errorLine(status: object): string {
  return `${JSON.stringify({ error: status })}\n`;
}

/** Each message as a server-sent event, whose id is the resume token. */
export function eventsForm(rpc: StreamingRpc): StreamForm {
  const show = jsonShower(outputOf(rpc));
  return {
    contentType: 'text/event-stream',
    failure: (status) => `data: ${JSON.stringify({ error: status })}\n\n`,
    async deliver(messages, writer) {
      writer.begin('text/event-stream');
      // Something must be sent for some clients to see that the stream is open.
      await writer.write(': open\n\n');
      for await (const message of messages) {
        const json = show(message);
        const token = json['resume_token'];
        // An empty id would make a browser forget the one it has.
        const id = token ? `id: ${String(token)}\n` : '';
        await writer.write(`${id}data: ${JSON.stringify(json)}\n\n`);
      }
      writer.end('text/event-stream');
    },
  };
}
