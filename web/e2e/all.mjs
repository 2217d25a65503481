// All claims about the dashboard in one process, so that they share one browser: `npm run e2e`. No file of claims may
// await while it is loaded: the first claims would start, and one that cannot be loaded would be missed in silence.
import { after } from 'node:test';
import './claims/sign-in.mjs';
import './claims/policy.mjs';
import './claims/window.mjs';
import './claims/filters.mjs';
import './claims/batches.mjs';
import './claims/trouble.mjs';
import './claims/looks.mjs';
import './claims/access.mjs';
import './claims/speed.mjs';
import { endAll } from './harness.mjs';

after(endAll);
