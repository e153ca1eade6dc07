import { accountPlugin, SignedIn, SignedOut, UserButton, useLogIn, useSession, useUser } from 'account-client/vue';
import { createApp, defineComponent, h } from 'vue';

const Page = defineComponent(() => {
  const logIn = useLogIn();
  const user = useUser();
  const session = useSession();
  return () => [
    h(UserButton, { labels: { account: 'My account' } }, () => h('a', { href: '#orders' }, 'Orders')),
    h('p', 'Shop'),
    h(SignedIn, () => h('h1', `Welcome, ${user.value?.name}`)),
    h(SignedOut, () => [h('h1', 'Welcome'), h('button', { type: 'button', onClick: () => logIn() }, 'Log in')]),
    session.value.error ? h('p', { role: 'alert' }, 'Offline') : undefined,
  ];
});

const url = new URLSearchParams(location.search).get('service') ?? '';
createApp(Page)
  .use(accountPlugin({ url }))
  .mount(document.body.appendChild(document.createElement('main')));
