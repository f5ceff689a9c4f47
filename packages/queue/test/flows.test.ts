import { flowApiTests } from './support/flow-api.js';
import { flowEdgeTests } from './support/flow-edges.js';
import { flowEndTests } from './support/flow-ends.js';

flowApiTests('the embedded store');
flowEdgeTests('the embedded store');
flowEndTests('the embedded store');
