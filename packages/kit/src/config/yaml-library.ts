import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

/** Loaded with the first text that is YAML: most commands read none, and it is large. */
export function yaml(): typeof Yaml {
  return require('yaml') as typeof Yaml;
}
