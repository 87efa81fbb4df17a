"""What runs steps: the contract (`base`), the embedded engine (`local`), Dagger (`dagger`)."""
