import type { IncomingHttpHeaders } from 'node:http';
import { fail, type ServedHandlers } from '../core/api.js';
import type { DashboardSite, SiteFile } from './site.js';

/** No external and no inline resources, so injected markup cannot run. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const pageHeaders = {
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // Not cached, so that a new build is visible at once; the page is small.
  'cache-control': 'no-cache',
};

const assetHeaders = {
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'public, max-age=31536000, immutable',
};

/** The dashboard's static files. They hold no data, so they need no token. */
export function dashboardHandlers(site: Pick<DashboardSite, 'page' | 'asset'>) {
  return {
    getDashboard: ({ exchange }) => {
      const page = site.page();
      if (!page) {
        throw fail('NOT_FOUND', 'The dashboard is not built. Run `npm run build`, then reload.');
      }
      return {
        ...answer(page, exchange.headers, pageHeaders),
        contentType: page.contentType as 'text/html',
      };
    },
    getDashboardAsset: ({ params, exchange }) => {
      const asset = site.asset(params.file);
      if (!asset) throw fail('NOT_FOUND', `The dashboard has no file ${params.file}.`);
      return {
        ...answer(asset, exchange.headers, assetHeaders),
        contentType: asset.contentType as 'text/css',
      };
    },
  } satisfies Partial<ServedHandlers>;
}

function answer(
  { bytes, gzipped }: SiteFile,
  requestHeaders: IncomingHttpHeaders,
  headers: Readonly<Record<string, string>>,
) {
  const packs = acceptsGzip(requestHeaders['accept-encoding']) && gzipped.length < bytes.length;
  return {
    status: 200 as const,
    content: packs ? gzipped : bytes,
    headers: {
      ...headers,
      vary: 'accept-encoding',
      ...(packs && { 'content-encoding': 'gzip' }),
    },
  };
}

function acceptsGzip(accepted: string | string[] | undefined): boolean {
  return /(?:^|,)\s*gzip\s*(?:,|$|;\s*q=(?!0(?:\.0*)?\s*(?:,|$)))/i.test(String(accepted ?? ''));
}
