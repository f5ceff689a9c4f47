import type { DescMessage } from '@bufbuild/protobuf';
import { BulkResultSchema, ChangeSchema, RecordSchema } from '@millrace/contract/db';

const carried = new Set<string>(
  [RecordSchema, ChangeSchema, BulkResultSchema].map(({ typeName }) => typeName),
);

/** Only messages with records use the hand-written codec; all others are rare. */
export function carriesRecords({ fields }: DescMessage): boolean {
  return fields.some(({ message }) => message !== undefined && carried.has(message.typeName));
}
