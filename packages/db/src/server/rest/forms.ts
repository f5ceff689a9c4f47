import type { DbRoute } from '@millrace/contract/db';
import type { StreamingRpc } from '../service/call.js';
import { backupFileForm } from './backup-file.js';
import {
  eventsForm,
  itemLinesForm,
  messageLinesForm,
  pageForm,
  type StreamForm,
} from './streams.js';

/** Response formats of a streaming method by media type, the default first. */
export function formsOf({ rpc, media }: DbRoute): ReadonlyMap<string, StreamForm> {
  const streaming = rpc as StreamingRpc;
  const isWatch = rpc === 'Watch';
  const makers: Record<string, () => StreamForm> = {
    'application/json': () => pageForm(streaming),
    'application/x-ndjson': () => (isWatch ? messageLinesForm : itemLinesForm)(streaming),
    'text/event-stream': () => eventsForm(streaming),
    'application/octet-stream': () => backupFileForm,
  };
  return new Map(
    media.map((type) => {
      const make = makers[type];
      if (!make) throw new Error(`REST has no form ${type} for ${rpc}`);
      return [type, make()];
    }),
  );
}

/** The format from the Accept header, or the default. */
export function chooseForm(
  forms: ReadonlyMap<string, StreamForm>,
  accept: string | undefined,
): StreamForm {
  for (const part of accept?.split(',') ?? []) {
    const form = forms.get(part.split(';')[0]!.trim().toLowerCase());
    if (form) return form;
  }
  return forms.values().next().value!;
}
