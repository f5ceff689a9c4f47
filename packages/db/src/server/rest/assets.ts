import { docsSite, type Asset } from '@millrace/kit/http';

const site = docsSite({
  title: 'Millrace database',
  document: '/openapi.yaml',
  assets: '/docs',
});

export const docsHeaders = site.headers;

/** A file of the documentation page. */
export function docsAsset(path: string): Asset | undefined {
  if (path === '/docs') return site.page;
  return path.startsWith('/docs/') ? site.asset(path.slice('/docs/'.length)) : undefined;
}
