export { createClient } from 'account-client';
export * from 'account-client/vue';
