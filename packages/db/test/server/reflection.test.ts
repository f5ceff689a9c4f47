import { Client, credentials, status } from '@grpc/grpc-js';
import { Database as Api } from '@millrace/contract/db';
import { expect, test } from 'vitest';
import { useServer } from './support/both.js';
import { decode, definition, type Message } from './support/proto.js';

const both = useServer();

/** Sends one reflection request, like grpcurl does. */
async function reflect(version: string, request: Message): Promise<Message> {
  const client = new Client(both.server.grpc, credentials.createInsecure());
  const service = definition[`grpc.reflection.${version}.ServerReflection`] as unknown as Record<
    string,
    {
      path: string;
      requestSerialize: (m: Message) => Buffer;
      responseDeserialize: (b: Buffer) => Message;
    }
  >;
  const method = service['ServerReflectionInfo']!;
  const call = client.makeBidiStreamRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
  );
  const answer = new Promise<Message>((resolve, reject) => {
    call.on('data', resolve);
    call.on('error', reject);
  });
  call.write(request);
  try {
    return await answer;
  } finally {
    call.end();
    client.close();
  }
}

const filesOf = (answer: Message) =>
  (answer['file_descriptor_response'] as { file_descriptor_proto: Buffer[] }).file_descriptor_proto;

test.each(['v1', 'v1alpha'])('reflection %s lists the services', async (version) => {
  const answer = await reflect(version, { list_services: '' });
  const { service } = answer['list_services_response'] as { service: { name: string }[] };
  expect(service.map(({ name }) => name)).toEqual([
    'millrace.db.v1.Database',
    'grpc.health.v1.Health',
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
  ]);
});

test.each(['v1', 'v1alpha'])('reflection %s describes the whole service', async (version) => {
  const files = filesOf(
    await reflect(version, { file_containing_symbol: 'millrace.db.v1.Database' }),
  ).map((bytes) => decode('google.protobuf.FileDescriptorProto', bytes));
  const names = files.map(({ name }) => name);
  expect(names).toContain('millrace/db/v1/db.proto');
  // All imports are included, so that a client needs no second request.
  for (const { dependency } of files)
    expect(names).toEqual(expect.arrayContaining(dependency as string[]));
  const [service] = files[0]!['service'] as { method: { name: string }[] }[];
  expect(service!.method.map(({ name }) => name)).toEqual(Api.methods.map(({ name }) => name));
});

test('reflection: finds members, files and extensions', async () => {
  for (const symbol of [
    'millrace.db.v1.Database.Insert',
    'millrace.db.v1.Record.data',
    'millrace.db.v1.UpdateMode',
    'grpc.health.v1.Health.Check',
  ]) {
    expect(filesOf(await reflect('v1', { file_containing_symbol: symbol })).length).toBeGreaterThan(
      0,
    );
  }
  const byName = await reflect('v1', { file_by_filename: 'google/protobuf/struct.proto' });
  expect(filesOf(byName)).toHaveLength(1);
  const numbers = await reflect('v1', {
    all_extension_numbers_of_type: 'google.protobuf.MethodOptions',
  });
  expect(numbers['all_extension_numbers_response']).toMatchObject({
    extension_number: [50433, 72295728],
  });
  const extension = { containing_type: 'google.protobuf.FieldOptions', extension_number: 50433 };
  expect(
    filesOf(await reflect('v1', { file_containing_extension: extension })).length,
  ).toBeGreaterThan(0);
});

test('reflection: unknown names are NOT_FOUND', async () => {
  for (const request of [
    { file_containing_symbol: 'millrace.db.v1.Nothing' },
    { file_containing_symbol: 'millrace.db.v1.Record.nothing' },
    { file_by_filename: 'nothing.proto' },
    { all_extension_numbers_of_type: 'nothing.Nothing' },
    { file_containing_extension: { containing_type: 'a.B', extension_number: 1 } },
  ]) {
    expect((await reflect('v1', request))['error_response']).toMatchObject({
      error_code: status.NOT_FOUND,
    });
  }
});

test('health: Check and List by service name', async () => {
  const { grpc } = both;
  expect(await grpc.health('millrace.db.v1.Database')).toEqual({ status: 'SERVING' });
  await expect(grpc.health('nothing')).rejects.toMatchObject({ code: status.NOT_FOUND });
  expect(await grpc.healthList()).toEqual({
    statuses: {
      '': { status: 'SERVING' },
      'millrace.db.v1.Database': { status: 'SERVING' },
    },
  });
  const watch = grpc.healthWatch('nothing');
  expect(await new Promise((resolve) => watch.on('data', resolve))).toEqual({
    status: 'SERVICE_UNKNOWN',
  });
  watch.on('error', () => undefined);
  watch.cancel();
});
