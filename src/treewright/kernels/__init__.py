"""Kernels for trees and other examples, and estimators that use them."""
