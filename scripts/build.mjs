/** `npm run build`: compiles every package into its dist/. */
import { prepare } from './prepare.mjs';

prepare();
