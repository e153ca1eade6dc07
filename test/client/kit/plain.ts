export { createClient } from 'account-client';
