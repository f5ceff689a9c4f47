import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

/** Loaded on first use, because it is large and most commands do not need it. */
export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
