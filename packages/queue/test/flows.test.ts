import { flowApiTests } from './support/flow-api.js';

flowApiTests('the embedded store');
