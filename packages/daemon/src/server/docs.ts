import { openApiYaml } from '@millrace/contract/documents';
import { docsSite, type Handlers } from '@millrace/kit/http';
import { fail } from '../core/refusals.js';
import type { Caller } from './access/authenticator.js';
import type { ServedOperations } from '../core/served-operations.js';

type DocsHandlers = Pick<
  Handlers<ServedOperations, Caller>,
  'getDocs' | 'getOpenapi' | 'getDocsAsset'
>;

const site = docsSite({
  title: 'Millrace agent daemon',
  document: '/api/docs/openapi.yaml',
  assets: '/api/docs/assets',
});

/** Serves the API documentation page and the OpenAPI document, without network access. */
export function docsHandlers(isOn: boolean): DocsHandlers {
  let yaml: Buffer | undefined;
  const check = () => {
    if (!isOn) throw fail('FEATURE_DISABLED', 'The API documentation is off (setting api_docs).');
  };
  return {
    getDocs: () => {
      check();
      const { bytes, contentType } = site.page;
      return {
        status: 200,
        contentType: contentType as 'text/html',
        content: bytes,
        headers: site.headers,
      };
    },
    getOpenapi: () => {
      check();
      yaml ??= Buffer.from(openApiYaml('daemon'));
      return { status: 200, contentType: 'application/yaml', content: yaml };
    },
    getDocsAsset: ({ params }) => {
      check();
      const asset = site.asset(params.file);
      if (!asset) throw fail('NOT_FOUND', `The documentation has no file ${params.file}.`);
      return {
        status: 200,
        contentType: asset.contentType as 'text/css',
        content: asset.bytes,
        headers: site.headers,
      };
    },
  };
}
