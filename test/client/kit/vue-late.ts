import { accountPlugin, SignedIn, SignedOut, useSessionStore } from 'account-client/vue';
import { createSSRApp, defineComponent, h, onMounted } from 'vue';
import { renderToString } from 'vue/server-renderer';

/** Hydrates what a server has rendered without the session, after the page knows it: a lazily hydrated component. */
const Page = defineComponent(() => {
  const { getSnapshot } = useSessionStore();
  onMounted(() => {
    document.title = `hydrated ${getSnapshot().status}`;
  });
  return () => [h(SignedIn, () => h('h1', 'Welcome')), h(SignedOut, () => h('h1', 'Log in'))];
});

const url = new URLSearchParams(location.search).get('service') ?? '';
const onServer = createSSRApp(Page).use(accountPlugin({ url }));
const main = document.body.appendChild(document.createElement('main'));
main.innerHTML = await renderToString(onServer);
const plugin = accountPlugin({ url });
await plugin.store.refresh();
createSSRApp(Page).use(plugin).mount(main);
