import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { Database } from '@millrace/contract/db';
import type { Clock } from '@millrace/kit/clock';
import type { Random } from '@millrace/kit/random';
import { CallRefusal } from './failures.js';
import type { Attempt, Transport } from './transport.js';

interface InsertRequest {
  collection?: string;
  id?: string;
  txId?: string;
}

const attempted = new WeakSet<object>();

/**
 * Gives an insert its id before it is sent, because a new leader does not know the request ids of
 * the old one. Returns whether the same request was sent before.
 */
export function insertOnce(
  method: { name: string },
  request: object,
  { clock, random }: { clock: Clock; random: Random },
): boolean {
  if (method.name !== 'Insert' && method.name !== 'InsertWithKey') return false;
  if (attempted.has(request)) return true;
  const insert = request as InsertRequest;
  // A record with an id that the caller chose may be of somebody else.
  if (insert.id !== undefined && insert.id !== '') return false;
  insert.id = random.ulid(clock.now());
  attempted.add(request);
  return false;
}

/**
 * The answer to a repeated insert that failed because its record exists: the first attempt was
 * successful. Undefined when there is no record with the id of this request.
 */
export async function repeatedInsert<Input extends DescMessage, Output extends DescMessage>(
  transport: Transport,
  method: DescMethodUnary<Input, Output>,
  request: MessageInitShape<Input>,
  error: unknown,
  attempt: Attempt,
): Promise<MessageShape<Output> | undefined> {
  if (!(error instanceof CallRefusal) || error.grpcCode !== 'ALREADY_EXISTS') return undefined;
  const { collection = '', id = '', txId = '' } = request as InsertRequest;
  if (txId !== '') return undefined;
  const { encoding } = request as { encoding?: number };
  try {
    const find = { collection, id, ...(encoding !== undefined && { encoding }) };
    const { record } = await transport.unary(Database.method.findById, find, attempt);
    return Object.assign(create(method.output), { record });
  } catch (failure) {
    if (failure instanceof CallRefusal && failure.grpcCode === 'NOT_FOUND') return undefined;
    throw failure;
  }
}
